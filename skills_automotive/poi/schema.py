"""The tables of the places index; another version of them is refused."""

SCHEMA_VERSION = 2
SCHEMA = """
create table meta(key text primary key, value text);
create table kind(number integer primary key, name text);
create table place(id integer primary key, osm text unique, kind text, name text, alt text, lat real, lon real, street text,
                   prominence real, hours text, zone text, country text, tags text);
-- The kind is a dimension of the box, so that "the chargers in this box" never reads the restaurants.
create virtual table place_box using rtree(id, min_lat, max_lat, min_lon, max_lon, min_kind, max_kind);
create virtual table place_words using fts5(words, content='', tokenize="unicode61 remove_diacritics 2");
"""
