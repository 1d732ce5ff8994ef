"""What vocabularies are learned from in these tests, and texts that are hard to give back."""

from hypothesis import strategies as st

TRAINING = [
    "你很漂亮。",
    "这只蝴蝶真漂亮，停在花朵上，我很喜欢它。",
    "我喜欢踢足球，更喜欢打篮球！",
    "You are beautiful.",
    "I like playing football, and I like playing basketball even more.",
    "It's 10:30; don't be late!",
    "他在 GitHub 上写 Python 代码。",
] * 3
TRAPS = ["<pad>", "<s>", "</s>", "<unk>", "<0x41>", "<0xE4>", "<", "</", "s>"]
ODD = [
    "",
    " ",
    "   a    b  ",
    "\t\n\r\x0b\x0c\x1c\x85\u2028\u2029\u00a0\u3000\u200b\ufeff",
    "\x00\x01\x1f\x7f",
    "，。！？；：“”‘’（）《》、……——％＄ＡＢＣ１２３",
    ",.!?;:\"'()<>...--%$ABC123",
    "扫帚㐂𠮷𪚥〇々〆ヶ⺀",
    "👍🏽👨‍👩‍👧‍👦🇨🇳🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "e\u0301 é n\u0303 ñ ﬁ ① ㎏ ½ Å \u0301 a\u0301\u0302\u0303",
    "中文English混排123和https://example.com/a?b=c&d=e。",
    "don't ''quoted'' rock'n'roll 'tis",
    "한국어 日本語 ไทย العربية עברית हिन्दी",
    "\U0010ffff\ufffd\ufffe\ue000",
    *TRAPS,
]
PIECES = st.sampled_from(
    [*ODD, *TRAINING[:7], " ", "  ", "你", "好", "，", "a", "B", "7", "'", "\u0301", "\u3000"]
)
TEXTS = (
    # Half of a surrogate pair is no text.
    st.text().map(lambda text: text.encode("utf-8", "ignore").decode())
    | st.lists(PIECES, max_size=6).map("".join)
    | st.text(st.characters(codec="utf-8"))
)
