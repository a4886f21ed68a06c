"""What atoms and rooms cost: the duals of the master."""

from dataclasses import dataclass

from engine.core.arguments import FloatArray


@dataclass(frozen=True, slots=True)
class Prices:
    """Duals of the master: what an atom costs, what a room of a kind and a single room do."""

    atoms: FloatArray
    kinds: FloatArray
    rows: FloatArray

    def toward(self, other: "Prices", share: float) -> "Prices":
        """Return the prices a share of the way to others."""
        return Prices(
            self.atoms + share * (other.atoms - self.atoms),
            self.kinds + share * (other.kinds - self.kinds),
            self.rows + share * (other.rows - self.rows),
        )
