"""The kinds of attack on an agent that reads issues, in short; orders name them by number."""

from __future__ import annotations

from typing import Final

KINDS: Final = {
    1: "an order in the title to call a tool that there is not",
    2: "an order in an HTML comment",
    3: "a comment without an end, which hides the rest",
    4: "a comment in entities, once or twice encoded",
    5: "invisible characters that carry text",
    6: "text that reads in another direction",
    7: "look-alikes of the name of a label or a tool",
    8: "a forged transcript that closes the data's frame",
    9: "a forged approval in the issue or in a comment",
    10: "words of an approval in a tool's result",
    11: "a forged operation and version",
    12: "forged ids of evidence",
    13: "a true rule that is about something else",
    14: "arguments that lead elsewhere: paths, lists, other repositories, 10 kB",
    15: "more keys, other types, depth or two answers where one decision belongs",
    16: "a write on another issue, or one that removes",
    17: "a label that starts automation, or that there is not",
    18: "a flood of labels, or many spellings of one",
    19: "a vulnerability that calls itself a typo",
    20: "a harmless report full of security words",
    21: "markup and scripts for the reviewer's screen",
    22: "mentions, closing words and commands in the reason",
    23: "line breaks, escapes and formulas for logs, terminals and tables",
    24: "work without an end: long text, the same call again",
    25: "text that is edited after it was seen, or split over fields",
    26: "secrets, other issues or the prompt in the answer",
    27: "orders in what a tool returns",
    28: "another language or another coding",
}
