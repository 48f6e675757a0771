"""`venus config show | check`."""
import argparse
import json

from venus_edge.errors import ConfigError
from venus_edge.settings import Settings


def config(argv: list[str]) -> int:
    """Show or check the settings."""
    parser = argparse.ArgumentParser(
        prog="venus config", description=config.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus config show\n  venus config check --config venus.toml\n  VENUS_LIVEKIT_PORT=7880 venus config show --json")
    parser.add_argument("action", choices=("show", "check"))
    parser.add_argument("--config", metavar="FILE", help="settings file (default: VENUS_CONFIG, else ./venus.toml if it exists)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    settings = Settings.load(args.config)
    unknown = Settings.unknown_variables()
    if unknown:
        raise ConfigError(f"{unknown[0]}: no such setting; allowed: VENUS_ and one of "
                          f"{', '.join(f.upper() for f in sorted(Settings.model_fields))}")
    if args.action == "check":
        print(json.dumps({"ok": True}) if args.json else "settings: ok")
    elif args.json:
        print(json.dumps(settings.shown()))
    else:
        for name, value in settings.shown().items():
            print(f"{name} = {value!r}")
    return 0
