"""What kinds of place there are: their OpenStreetMap tags, what people call them, and how to speak of one without a name."""
from dataclasses import dataclass

from skills_automotive.poi.text import normal


@dataclass(frozen=True)
class Kind:
    """`tags`: `key=value` of OpenStreetMap, `key=*` for any value; the first kind that matches an object is its kind.

    `landmark`: people mean the well-known one and not the nearest ("the casino").
    """

    name: str
    tags: tuple[str, ...]
    en: tuple[str, ...]
    zh: tuple[str, ...]
    landmark: bool = False


KINDS = (
    Kind("charging_station", ("amenity=charging_station",),
         ("charging station", "charger", "charging point", "charge point", "ev charger", "electric charger", "car charger",
          "fast charger", "charging"), ("充电站", "充电桩")),
    Kind("fuel", ("amenity=fuel",),
         ("petrol station", "gas station", "fuel station", "filling station", "service station", "petrol", "gas", "fuel"),
         ("加油站",)),
    Kind("parking", ("amenity=parking",),
         ("car park", "parking", "parking garage", "parking lot", "parking space", "place to park", "somewhere to park",
          "garage"), ("停车场", "车库")),
    Kind("pharmacy", ("amenity=pharmacy", "healthcare=pharmacy"),
         ("pharmacy", "chemist", "drugstore", "drug store"), ("药店", "药房")),
    Kind("hospital", ("amenity=hospital", "healthcare=hospital"),
         ("hospital", "emergency room", "clinic"), ("医院",)),
    Kind("doctor", ("amenity=doctors", "healthcare=doctor", "amenity=clinic", "healthcare=clinic"),
         ("doctor", "medical centre", "doctor's"), ("诊所", "医生")),
    Kind("dentist", ("amenity=dentist", "healthcare=dentist"), ("dentist",), ("牙医",)),
    Kind("restaurant", ("amenity=restaurant",),
         ("restaurant", "place to eat", "somewhere to eat", "something to eat", "food", "dinner", "lunch"),
         ("餐厅", "饭店", "餐馆")),
    Kind("fast_food", ("amenity=fast_food",), ("fast food", "snack bar", "takeaway"), ("快餐店", "快餐")),
    Kind("cafe", ("amenity=cafe",), ("cafe", "coffee shop", "coffee", "coffee bar"), ("咖啡店", "咖啡馆", "咖啡厅")),
    Kind("bar", ("amenity=bar", "amenity=pub", "amenity=biergarten"), ("bar", "pub"), ("酒吧",)),
    Kind("ice_cream", ("amenity=ice_cream",), ("ice cream shop", "ice cream", "ice cream parlour"), ("冰淇淋店", "冰淇淋")),
    Kind("nightclub", ("amenity=nightclub",), ("nightclub", "club", "disco"), ("夜店", "夜总会")),
    Kind("supermarket", ("shop=supermarket",),
         ("supermarket", "grocery store", "groceries", "grocery"), ("超市",)),
    Kind("convenience", ("shop=convenience", "shop=kiosk"), ("convenience store", "corner shop", "kiosk"), ("便利店",)),
    Kind("market", ("amenity=marketplace",), ("market", "food market"), ("市场", "菜市场"), True),
    Kind("bakery", ("shop=bakery", "shop=pastry"), ("bakery", "baker", "boulangerie", "bread shop"), ("面包店",)),
    Kind("hotel", ("tourism=hotel", "tourism=hostel", "tourism=guest_house", "tourism=motel"),
         ("hotel", "place to stay", "somewhere to stay"), ("酒店", "宾馆", "旅馆")),
    Kind("museum", ("tourism=museum", "tourism=gallery"), ("museum", "gallery"), ("博物馆", "美术馆"), True),
    Kind("casino", ("amenity=casino",), ("casino",), ("赌场",), True),
    Kind("theatre", ("amenity=theatre", "amenity=arts_centre"), ("theatre", "theater", "opera", "opera house"),
         ("剧院", "歌剧院"), True),
    Kind("cinema", ("amenity=cinema",), ("cinema", "movie theater", "movies"), ("电影院",)),
    Kind("bank", ("amenity=bank",), ("bank",), ("银行",)),
    Kind("atm", ("amenity=atm",), ("cash machine", "atm", "cash point", "cashpoint", "cash dispenser"),
         ("取款机", "自动取款机")),
    Kind("exchange", ("amenity=bureau_de_change",), ("currency exchange", "bureau de change"), ("外币兑换处",)),
    Kind("post_office", ("amenity=post_office",), ("post office",), ("邮局",)),
    Kind("toilets", ("amenity=toilets",),
         ("public toilet", "toilets", "toilet", "restroom", "bathroom", "washroom", "wc", "loo"), ("洗手间", "厕所", "卫生间")),
    Kind("police", ("amenity=police",), ("police station", "police"), ("警察局", "派出所")),
    Kind("fire_station", ("amenity=fire_station",), ("fire station",), ("消防站",)),
    Kind("station", ("railway=station", "railway=halt"),
         ("train station", "railway station", "station", "gare"), ("火车站", "车站"), True),
    Kind("bus_station", ("amenity=bus_station",), ("bus station", "coach station"), ("汽车站",)),
    Kind("taxi", ("amenity=taxi",), ("taxi stand", "taxi", "taxi rank"), ("出租车站",)),
    Kind("ferry", ("amenity=ferry_terminal",), ("ferry terminal", "ferry"), ("码头",)),
    Kind("heliport", ("aeroway=heliport", "aeroway=helipad"), ("heliport", "helipad"), ("直升机场",), True),
    Kind("beach", ("natural=beach", "leisure=beach_resort"), ("beach",), ("海滩", "沙滩")),
    Kind("marina", ("leisure=marina",), ("marina", "port", "harbour", "harbor"), ("码头", "港口"), True),
    Kind("place_of_worship", ("amenity=place_of_worship",), ("church", "cathedral", "chapel", "place of worship"),
         ("教堂",), True),
    Kind("townhall", ("amenity=townhall",), ("town hall", "city hall"), ("市政厅",), True),
    Kind("embassy", ("office=diplomatic", "amenity=embassy"), ("embassy", "consulate"), ("大使馆", "领事馆")),
    Kind("school", ("amenity=school", "amenity=college", "amenity=university", "amenity=kindergarten"),
         ("school",), ("学校",)),
    Kind("library", ("amenity=library",), ("library",), ("图书馆",), True),
    Kind("stadium", ("leisure=stadium",), ("stadium",), ("体育场",), True),
    Kind("gym", ("leisure=fitness_centre",), ("gym", "fitness centre"), ("健身房",)),
    Kind("swimming_pool", ("leisure=swimming_pool", "leisure=water_park"), ("swimming pool", "pool"), ("游泳池",)),
    Kind("sports", ("leisure=sports_centre", "leisure=sports_hall"), ("sports centre",), ("体育馆",)),
    Kind("playground", ("leisure=playground",), ("playground",), ("游乐场",)),
    Kind("park", ("leisure=park", "leisure=garden"), ("park", "garden", "gardens"), ("公园", "花园"), True),
    Kind("zoo", ("tourism=zoo", "tourism=aquarium"), ("zoo", "aquarium"), ("动物园",), True),
    Kind("viewpoint", ("tourism=viewpoint",), ("viewpoint", "lookout", "view"), ("观景台",)),
    Kind("tourist_office", ("tourism=information",), ("tourist office", "tourist information"), ("旅游咨询处",)),
    Kind("car_wash", ("amenity=car_wash",), ("car wash",), ("洗车店",)),
    Kind("car_repair", ("shop=car_repair", "shop=tyres"), ("garage for repairs", "mechanic", "car repair", "repair shop"),
         ("汽车修理店",)),
    Kind("car_rental", ("amenity=car_rental",), ("car rental", "rental car"), ("租车行",)),
    Kind("hairdresser", ("shop=hairdresser", "shop=beauty"), ("hairdresser", "barber", "hair salon"), ("理发店",)),
    Kind("clothes", ("shop=clothes", "shop=shoes"), ("clothes shop", "clothing store"), ("服装店",)),
    Kind("jewelry", ("shop=jewelry", "shop=watches"), ("jeweller", "jewelry store", "watch shop"), ("珠宝店",)),
    Kind("florist", ("shop=florist",), ("florist", "flower shop"), ("花店",)),
    Kind("mall", ("shop=mall", "shop=department_store"), ("shopping centre", "shopping mall", "mall"), ("购物中心", "商场")),
    Kind("conference", ("amenity=conference_centre", "amenity=events_venue", "amenity=exhibition_centre"),
         ("conference centre", "convention centre"), ("会议中心",), True),
    Kind("palace", ("historic=castle", "historic=palace", "building=palace", "historic=fort"), ("palace", "castle", "fort"),
         ("宫殿", "城堡"), True),
    Kind("sight", ("tourism=attraction", "tourism=artwork", "tourism=theme_park", "historic=*"), ("sight", "attraction"), ("景点",), True),
    Kind("shop", ("shop=*",), ("shop", "store"), ("商店",)),
    Kind("office", ("office=*",), ("office",), ("办公室",)),
)
STREET, ADDRESS = "street", "address"
BY_NAME = {kind.name: kind for kind in KINDS}
_BY_WORDS = {normal(word): kind for kind in reversed(KINDS) for word in (kind.name.replace("_", " "), *kind.en, *kind.zh)}


def kind_of(words: str) -> Kind | None:
    """The kind that these words name and nothing else ("a charger nearby", "car parks", "药店"), or None."""
    text = normal(words)
    for candidate in (text, text.removesuffix("s"), text.removesuffix("es"), f"{text.removesuffix('ies')}y"):
        if candidate in _BY_WORDS:
            return _BY_WORDS[candidate]
    return None


def of_tags(tags: dict) -> str | None:
    """The kind's name of an OpenStreetMap object, or None when it is of no use to a driver."""
    for kind in KINDS:
        for tag in kind.tags:
            key, _, value = tag.partition("=")
            if key in tags and (value == "*" or value in tags[key].split(";")):
                return kind.name
    return None


def phrase(kind_name: str, street: str, lang: str) -> str:
    """How to speak of a place without a name: "a charging station on Avenue Albert II" / "Avenue Albert II上的充电站"."""
    kind = BY_NAME[kind_name]
    if lang == "zh":
        return f"{street}上的{kind.zh[0]}" if street else kind.zh[0]
    article = "an" if kind.en[0][0] in "aeiou" and not kind.en[0].startswith("eu") else "a"
    return f"{article} {kind.en[0]}" + (f" on {street}" if street else "")
