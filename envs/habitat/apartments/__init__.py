"""Nine furnished apartments, from one room to eight, as `.glb` files with y up.

An earlier version of this package (0.1.0) drew them, with light and shadows in their textures.
The worker imports this file: it must run on Python 3.9 with only the standard library.
"""

from pathlib import Path

NAMES = (
    *("bedroom", "living_room", "study", "office", "hotel_suite"),
    *("studio", "two_rooms", "family_flat", "large_flat"),
)
FOLDER = Path(__file__).parent
