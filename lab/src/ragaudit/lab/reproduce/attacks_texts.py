"""Texts of these experiments: short paragraphs written for them, and WordNet's 117,659 glosses."""

from pathlib import Path

from ragaudit.encoding.errors import RefusedError

PARAGRAPHS = (
    "The Earth goes around the Sun once in about 365 days, at a distance of 150 million "
    "kilometres. Its axis is tilted, which is why there are seasons.",
    "The Renaissance began in the cities of Italy in the fourteenth century, when scholars and "
    "painters turned again to the works of Greece and Rome.",
    "Mars goes around the Sun once in about 687 days. It has two small moons, a thin atmosphere "
    "and the tallest volcano known.",
    "The Moon goes around the Earth in about 27 days and always shows it the same side.",
    "Jupiter is the largest planet of the solar system, a ball of hydrogen and helium with a storm "
    "that has lasted for centuries.",
    "Light needs about eight minutes from the Sun to the Earth.",
    "Water boils at 100 degrees Celsius at sea level, and at lower temperatures on high mountains, "
    "where the air presses less.",
    "Water freezes at 0 degrees Celsius, expands, and floats: ice is lighter than water.",
    "Plants make sugar from water and carbon dioxide with the energy of light and give off oxygen.",
    "Leaves are green because chlorophyll takes up red and blue light and reflects green.",
    "The heart pumps blood through the lungs and then through the rest of the body.",
    "The lungs take up oxygen from the air and give off carbon dioxide.",
    "Vaccines teach the immune system to know a germ before it meets it.",
    "Penicillin was found by Alexander Fleming in 1928, when mould killed the bacteria in a dish.",
    "The French Revolution began in 1789 with a crisis of the treasury and ended the old monarchy.",
    "The American colonies declared their independence from Britain in 1776.",
    "The Roman Empire in the west ended in 476, when its last emperor was deposed.",
    "The Roman Republic was ruled by two consuls, who were elected for one year.",
    "Paper was made in China some two thousand years ago, from bark, rags and nets.",
    "Printing with movable metal type began in Mainz around 1450 and made books cheap.",
    "The Great Wall of China was built over many centuries against riders from the north.",
    "The pyramids of Giza were built as tombs for kings of Egypt about 4,500 years ago.",
    "The Nile runs north through eleven countries into the Mediterranean Sea.",
    "The Amazon carries more water than any other river and runs through the largest rain forest.",
    "Mount Everest, on the border of Nepal and Tibet, is the highest mountain above the sea.",
    "The Pacific is the largest and deepest ocean; the Mariana Trench is its deepest place.",
    "Earthquakes happen where plates of the Earth's crust slide past or under each other.",
    "Volcanoes erupt when molten rock and gas rise from below the Earth's crust.",
    "Electric current is measured in amperes, voltage in volts and resistance in ohms.",
    "A magnet that moves in a coil of wire makes an electric current; power stations use that.",
    "Computers store numbers as ones and zeros, in tiny switches called transistors.",
    "The Internet sends messages as packets, which may take different ways to their destination.",
    "A prime number has exactly two divisors, itself and one; there are infinitely many of them.",
    "The square of the long side of a right triangle is the sum of the squares of the others.",
    "Zero as a number with its own rules was written down in India in the seventh century.",
    "Chess is played on 64 squares by two players with sixteen pieces each.",
    "Football is played by two teams of eleven; only the goalkeepers may use their hands.",
    "The violin has four strings, tuned in fifths, and is played with a bow.",
    "A piano makes its sound with small hammers that strike strings when keys are pressed.",
    "Beethoven went on writing music after he had lost his hearing.",
    "Bread rises because yeast turns sugar into carbon dioxide, which stretches the dough.",
    "Cheese is made from milk that is curdled, drained, salted and left to ripen.",
    "Coffee was first grown in Ethiopia and Yemen and is now grown throughout the tropics.",
    "Tea is made from the leaves of a shrub that grows on hills in China, India and Kenya.",
    "Bees tell each other by a dance in which direction and how far away flowers are.",
    "Ants find the way back to food along trails of scent that others have left.",
    "Whales are mammals: they breathe air and give milk to their young.",
    "Birds are descended from dinosaurs; their feathers are older than their flight.",
    "Bicycles stay upright while they move because the rider steers into a fall.",
    "Steam engines drove the mills, mines and railways of the nineteenth century.",
    "Inflation is a rise of prices in general: money buys less than it did.",
    "A central bank sets the interest rate at which other banks borrow from it.",
)
"""The first two are the pair that the paper's own corpus picked, in other words."""


FOLDER = Path("/usr/share/wordnet")


def glosses(count: int, folder: Path = FOLDER) -> list[str]:
    """Return the first texts of nouns, verbs, adjectives and adverbs, in the order of the files.

    Args:
        count: of texts, at most; there are 117,659.
        folder: with the files of wndb(5).

    Raises:
        RefusedError: the files are not there.
    """
    found: list[str] = []
    for part in ("noun", "verb", "adj", "adv"):
        try:
            lines = (folder / f"data.{part}").read_text(encoding="ascii").splitlines()
        except OSError as error:
            raise RefusedError(
                "WordNet is not installed", where=str(folder), expected="Debian's wordnet-base"
            ) from error
        # The licence stands before the first synset, indented.
        found += [
            line.partition(" | ")[2].strip() for line in lines if not line.startswith(" ")
        ]  # fmt: skip
        if len(found) >= count:
            break
    return found[:count]
