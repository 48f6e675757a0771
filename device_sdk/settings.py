"""Options of one device."""

from dataclasses import dataclass, field

from venus_edge.errors import ConfigError

OUT_RATES = (16_000, 24_000, 48_000)


@dataclass(frozen=True)
class DeviceSettings:
    """Checked when made: a bad value raises ConfigError that names the field and what is allowed."""

    out_rate: int = 24_000
    """Samples per second of the loudspeaker side, and of every speech segment."""
    dac_delay_s: float = 0.04
    """From handing a block to the DAC until its first sample leaves the loudspeaker."""
    adc_delay_s: float = 0.0
    """From a sound at the microphone until its block has ended in `capture`, beyond the block itself."""
    start_s: float = 0.04
    """Speech buffered before a segment starts (or goes on after a gap)."""
    buffer_s: float = 30.0
    """Speech held at most; more is dropped, counted and reported as lost."""
    gate: str = "vad"
    """vad | always | push_to_talk"""
    preroll_s: float = 0.3
    """Sound from before an onset that is sent with it."""
    hangover_s: float = 0.48
    """Silence after which speech is over and the gate closes."""
    vad_on: float = 0.5
    vad_off: float = 0.35
    vad_floor_dbfs: float = -70.0
    """Frames quieter than this are silence without asking the model."""
    echo_cancellation: bool = True
    """Off only where the microphone can't hear the loudspeaker, or the platform cancels the echo itself."""
    noise_suppression: bool = False
    echo_guard_s: float = 0.4
    """At the start of the very first speech the echo canceller still learns: onsets count only if strong (0.85)."""
    duck_db: float = -15.0
    verdict_s: float = 1.5
    """Ducking without a verdict from the cloud ends after this, once speech is over."""
    offline_flush_s: float = 0.7
    """With the link down, speech over the assistant for this long stops it."""
    rejoin_s: float = 300.0
    """How long joining a lost room again is tried; 0: not at all."""
    output: str = "spk"
    """Route in the reports: spk, headset, ..."""
    agent_identity: str = ""
    """Obey only this identity (which must be of kind agent); empty: the first agent of the room."""
    capabilities: dict = field(default_factory=dict)
    """Told in the hello."""
    boot: int | None = None
    """Boot number (u32); None: a random one."""
    allow_insecure: bool = False
    """Permit ws:// to a host that isn't this machine."""

    def __post_init__(self):
        def check(name: str, ok: bool, allowed: str) -> None:
            if not ok:
                raise ConfigError(f"device.{name}: must be {allowed}, not {getattr(self, name)!r}", field=name)

        def between(name: str, low: float, high: float) -> None:
            value = getattr(self, name)
            check(name, isinstance(value, (int, float)) and low <= value <= high, f"{low}..{high}")

        check("out_rate", self.out_rate in OUT_RATES, " or ".join(map(str, OUT_RATES)))
        check("gate", self.gate in ("vad", "always", "push_to_talk"), "vad, always or push_to_talk")
        check("boot", self.boot is None or 0 <= self.boot < 2**32, "0..2**32-1 or None")
        check("output", len(self.output) <= 16, "at most 16 characters")
        between("dac_delay_s", 0.0, 0.4)
        between("adc_delay_s", 0.0, 0.09)
        between("start_s", 0.0, 1.0)
        between("buffer_s", 2.0, 120.0)
        between("preroll_s", 0.0, 0.3)
        between("hangover_s", 0.1, 3.0)
        between("vad_on", 0.05, 1.0)
        between("vad_off", 0.01, self.vad_on)
        between("vad_floor_dbfs", -120.0, 0.0)
        between("echo_guard_s", 0.0, 5.0)
        between("duck_db", -60.0, -1.0)
        between("verdict_s", 0.1, 10.0)
        between("offline_flush_s", 0.1, 10.0)
        between("rejoin_s", 0.0, 86_400.0)
