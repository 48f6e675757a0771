"""The tables of the places index; another version of them is refused."""

SCHEMA_VERSION = 1
SCHEMA = """
create table meta(key text primary key, value text);
create table place(id integer primary key, osm text, kind text, name text, alt text, lat real, lon real, street text,
                   prominence real, hours text, tags text);
create index place_kind on place(kind);
create virtual table place_box using rtree(id, min_lat, max_lat, min_lon, max_lon);
create virtual table place_words using fts5(words, content='', tokenize="unicode61 remove_diacritics 2");
"""
