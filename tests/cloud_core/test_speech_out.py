"""Speech goes out in order, never more than the credit ahead of what was heard, and stops at once when it is cut."""
import asyncio

import numpy as np

from cloud_core.front_end import SegmentChunk
from cloud_core.speech_out import AHEAD_S, SpeechSender

RATE = 24_000


class Device:
    """A whole receiving end: keeps the bytes of each stream, plays on request."""

    def __init__(self):
        self.bytes, self.closed, self.heard = {}, [], {}

    async def open(self, seg, rate):
        self.bytes[seg] = b""
        device = self

        class Stream:
            async def write(self, data):
                device.bytes[seg] += data

            async def close(self):
                device.closed.append(seg)

        return Stream()

    def played(self, seg):
        return self.heard.get(seg, 0)


def chunk(seg, start, samples, last=False):
    return SegmentChunk(seg, start, RATE, samples, (), last)


async def settle(n=30):
    for _ in range(n):
        await asyncio.sleep(0)


async def running(device):
    sender = SpeechSender(device.open, device.played)
    return sender, asyncio.create_task(sender.run())


async def test_short_segments_go_whole_in_order_and_are_closed():
    device = Device()
    sender, task = await running(device)
    a, b = np.arange(4_800, dtype=np.int16), np.arange(9_600, dtype=np.int16)
    sender.push(chunk("a", 0, a, True))
    sender.push(chunk("b", 0, b[:4_000]))
    sender.push(chunk("b", 4_000, b[4_000:], True))
    await settle()
    assert device.bytes["a"] == a.tobytes() and device.bytes["b"] == b.tobytes() and device.closed == ["a", "b"]
    task.cancel()


async def test_no_more_than_the_credit_is_sent_ahead():
    device = Device()
    sender, task = await running(device)
    sender.push(chunk("a", 0, np.ones(10 * RATE, np.int16), True))
    await settle(100)
    assert AHEAD_S * RATE <= len(device.bytes["a"]) // 2 <= (AHEAD_S + 0.1) * RATE
    device.heard["a"] = 2 * RATE
    sender.progress()
    await settle(100)
    assert (AHEAD_S + 2) * RATE <= len(device.bytes["a"]) // 2 <= (AHEAD_S + 2.1) * RATE
    task.cancel()


async def test_an_abort_sends_nothing_more_and_frees_the_next():
    device = Device()
    sender, task = await running(device)
    sender.push(chunk("a", 0, np.ones(10 * RATE, np.int16), True))
    await settle(100)
    sent = len(device.bytes["a"])
    assert sender.abort("a") == ["a"] and sender.push(chunk("a", 0, np.ones(10, np.int16))) is False
    sender.push(chunk("b", 0, np.ones(480, np.int16), True))
    await settle(100)
    assert len(device.bytes["a"]) == sent and device.closed == ["a", "b"]
    task.cancel()


async def test_the_queue_is_bounded_and_says_what_was_lost():
    device, lost = Device(), []
    sender = SpeechSender(device.open, device.played, lost.append)
    for k in range(100):
        sender.push(chunk(f"s{k}", 0, np.ones(RATE, np.int16), True))
    assert lost and all(s.startswith("s") for s in lost) and len(lost) < 50


async def test_the_tail_is_padded_to_whole_20_ms():
    device = Device()
    sender, task = await running(device)
    sender.push(chunk("a", 0, np.ones(1_000, np.int16), True))
    await settle()
    assert len(device.bytes["a"]) // 2 == 1_440
    task.cancel()


async def test_a_stream_that_breaks_loses_its_own_segment_and_the_next_is_spoken():
    """The device left or the link broke: the writer lives on."""
    device, lost = Device(), []
    opened = device.open

    async def flaky(seg, rate):
        if seg == "a":
            raise ConnectionError("no such participant")
        return await opened(seg, rate)

    sender = SpeechSender(flaky, device.played, lost.append)
    task = asyncio.create_task(sender.run())
    sender.push(chunk("a", 0, np.ones(4_800, np.int16), True))
    sender.push(chunk("b", 0, np.ones(4_800, np.int16), True))
    await settle()
    assert lost == ["a"] and device.closed == ["b"] and not task.done()
    task.cancel()


async def test_a_stream_that_takes_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr("cloud_core.speech_out.STALL_S", 0.05)
    lost, never = [], asyncio.Event()

    async def stuck(seg, rate):
        await never.wait()

    sender = SpeechSender(stuck, lambda seg: 0, lost.append)
    task = asyncio.create_task(sender.run())
    sender.push(chunk("a", 0, np.ones(4_800, np.int16), True))
    await asyncio.sleep(0.2)
    assert lost == ["a"] and not task.done()
    task.cancel()


async def test_an_end_in_mid_sentence_closes_the_stream():
    """The device must not wait for a rest that nobody will send."""
    device = Device()
    sender, task = await running(device)
    sender.push(chunk("a", 0, np.ones(4_800, np.int16)))
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert device.closed == ["a"]
