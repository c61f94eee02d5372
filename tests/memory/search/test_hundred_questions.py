"""A hundred made-up questions in four languages find their message by words alone."""

import pytest

from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord

SAID = {
    "German": "Gestern habe ich {} gesehen",
    "Russian": "Вчера мы гуляли и видели {}",
    "Persian": "دیروز {} را دیدم",
    "Chinese": "昨天我看到了{}",
}
ASKED = {
    "German": "Was war mit {}?",
    "Russian": "Что было с {}?",
    "Persian": "{} چه شد؟",
    "Chinese": "{}怎么样？",
}
THINGS = {
    "German": """Hunde/Hund Katzen/Katze Boote/Boot Bücher/Buch Häuser/Haus Gärten/Garten
        Brücken/Brücke Züge/Zug Berge/Berg Teiche/Teich Lampen/Lampe Gitarren/Gitarre Kirchen/Kirche
        Schlösser/Schloss Märkte/Markt Blumen/Blume Wolken/Wolke Pferde/Pferd Igel/Igel
        Inseln/Insel Türme/Turm Brunnen/Brunnens Mühlen/Mühle Segel/Segeln Drachen/Drachens""",
    "Russian": """собаку/собакой кошку/кошкой лодку/лодкой книгу/книгой дом/домом сад/садом
        мост/мостом поезд/поездом гору/горой озеро/озером лампу/лампой гитару/гитарой
        церковь/церковью крепость/крепостью базар/базаром розу/розой облако/облаком лошадь/лошадью
        лису/лисой пустыню/пустыней башню/башней театр/театром мельницу/мельницей парус/парусом
        дракона/драконом""",
    "Persian": """سگ/سگ گربه/گربه قایق/قایق کتاب/کتاب خانه/خانه باغ/باغ پل/پل قطار/قطار کوه/کوه
        دریاچه/دریاچه چراغ/چراغ گیتار/گیتار کلیسا/کلیسا قلعه/قلعه بازار/بازار گل/گل ابر/ابر
        اسب/اسب روباه/روباه جزیره/جزیره برج/برج فواره/فواره آسیاب/آسیاب بادبان/بادبان
        اژدها/اژدها""",
    "Chinese": """小狗/小狗 猫咪/猫咪 帆船/帆船 图书/图书 房屋/房屋 花园/花园 大桥/大桥 火车/火车
        高山/高山 湖泊/湖泊 台灯/台灯 吉他/吉他 教堂/教堂 城堡/城堡 市场/市场 玫瑰/玫瑰
        云彩/云彩 骏马/骏马 狐狸/狐狸 岛屿/岛屿 铁塔/铁塔 喷泉/喷泉 磨坊/磨坊 风筝/风筝
        恐龙/恐龙""",
}


@pytest.mark.parametrize("language", THINGS)
def test_each_question_finds_its_message_first(language: str) -> None:
    pairs = [pair.split("/") for pair in THINGS[language].split()]
    assert len(pairs) == 25
    index = HybridIndex()
    for said, _ in pairs:
        index.extend([IndexRecord(SAID[language].format(said), session=len(index))])
    missed = []
    for row, (_, asked) in enumerate(pairs):
        hits = index.search(ASKED[language].format(asked), None, 3)
        if not hits or hits[0].row != row:
            missed.append(asked)
    assert missed == []
