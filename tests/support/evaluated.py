"""What tests evaluate policies in: the same in all, so that most programs are compiled once."""

WORLDS = ("LavaGapS5", "LavaGapS6")  # of different sizes and time limits
EPISODES = 3
