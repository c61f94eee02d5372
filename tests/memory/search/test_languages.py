"""Words alone find the right message in every script, and a greeting finds nothing.

A hundred further questions in four languages are made up of words in two of their forms.
"""

import tomllib
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord

SAID = tomllib.loads(Path(__file__).with_name("said.toml").read_text("utf-8"))
ASKED = (
    ("English", "Where does my sister live?", 0),
    ("English", "What about the film on the volcano?", 2),
    ("English", "Whose cars broke?", 3),
    ("Russian", "Где живет сестра?", 0),
    ("Russian", "О каких вулканах был фильм?", 2),
    ("Russian", "Чья машина сломалась?", 3),
    ("Persian", "خواهرم کجا زندگی می‌کند؟", 0),
    ("Persian", "فیلم درباره آتشفشان چه بود؟", 2),
    ("Persian", "ماشین چه کسی خراب شد؟", 3),
    ("Chinese", "我姐姐住在哪里？", 0),
    ("Chinese", "那部火山电影怎么样？", 2),
    ("Chinese", "谁的车坏了？", 3),
    ("Japanese", "姉はどこに住んでいますか", 0),
    ("Japanese", "火山の映画は何でしたか", 2),
    ("Japanese", "誰の車が故障しましたか", 3),
    ("Thai", "พี่สาวอาศัยอยู่ที่ไหน", 0),
    ("Thai", "หนังภูเขาไฟเป็นอย่างไร", 2),
    ("Thai", "รถของใครเสีย", 3),
)
NOTHING = {
    "English": "hello|thanks!|What is it?|What is the boiling point of mercury?",
    "Russian": "привет|Какова температура кипения ртути?",
    "Persian": "سلام|نقطه جوش جیوه چند درجه است؟",
    "Chinese": "你好|水银的沸点是多少？",
    "Japanese": "こんにちは",
    "Thai": "สวัสดี",
}
SMALL_TALK = (
    "Good morning! How are you?|what's 8 times 7?|Wie geht es dir?|Combien font 12 fois 9 ?|"
    "Доброе утро!|Apa kabar?|شب بخیر|早上好！"
)


@cache
def spoken(*languages: str) -> tuple[HybridIndex, dict[str, int]]:
    """Return an index of the messages of these languages, and the first row of each."""
    index, first = HybridIndex(), {}
    for language in languages:
        first[language] = len(index)
        for text in SAID[language]:
            index.extend([IndexRecord(text, session=len(index))])
    return index, first


@pytest.mark.parametrize(("language", "question", "answer"), ASKED)
def test_the_right_message_ranks_first_alone_and_among_all_languages(
    language: str, question: str, answer: int
) -> None:
    alone, _ = spoken(language)
    assert alone.search(question, None, 3)[0].row == answer
    together, first = spoken(*SAID)
    assert together.search(question, None, 3)[0].row == first[language] + answer


@pytest.mark.parametrize("language", NOTHING)
def test_greetings_and_unrelated_questions_find_nothing(language: str) -> None:
    index, _ = spoken(language)
    assert not any(index.search(question, None, 3) for question in NOTHING[language].split("|"))


@pytest.mark.parametrize(
    ("said", "asked"),
    [("Danke!", "Super, vielen Dank dir"), *((text, text) for text in SMALL_TALK.split("|"))],
)
def test_small_talk_does_not_even_find_itself(said: str, asked: str) -> None:
    index = HybridIndex()
    index.extend([IndexRecord(said, session=0)])
    assert index.search(asked, None, 3) == []


DATED = (
    ("Ich habe heute mein Fahrrad verkauft", "Was habe ich im Mai verkauft?"),
    ("I sold my bicycle today", "What happened in May?"),
    ("Сегодня я продал свой велосипед", "Что было в мае?"),
    ("Dnes jsem prodal svoje kolo", "Co jsem prodal v květnu?"),
    ("امروز دوچرخه‌ام را فروختم", "در ماه مه چه شد؟"),
    ("今天我卖了我的自行车", "五月发生了什么？"),
    ("今天我卖了我的自行车", "5月发生了什么？"),
)


@pytest.mark.parametrize(("said", "question"), DATED)
def test_the_month_of_a_message_is_found_in_its_language(said: str, question: str) -> None:
    index = HybridIndex()
    for row, month in enumerate((3, 4, 5, 6)):
        index.extend([IndexRecord(said, session=row, said_on=date(2026, month, 14))])
    assert index.search(question, None, 4)[0].row == 2


SEEN = {
    "German": "Gestern habe ich {} gesehen",
    "Russian": "Вчера мы гуляли и видели {}",
    "Persian": "دیروز {} را دیدم",
    "Chinese": "昨天我看到了{}",
}
QUESTIONS = {
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
        index.extend([IndexRecord(SEEN[language].format(said), session=len(index))])
    missed = []
    for row, (_, asked) in enumerate(pairs):
        hits = index.search(QUESTIONS[language].format(asked), None, 3)
        if not hits or hits[0].row != row:
            missed.append(asked)
    assert missed == []
