"""`FreeSpace`: where a body can stand and walk, as a compact heightfield.

Like Recast's compact heightfield: the ground plane is cut into square columns, and each column has
up to K *layers*, heights at which the body's centre can stand (walls and furniture already grown by
the body's radius). One column may have several layers: the storeys of a building, a bridge over a
room. The layers of a column are in no particular order: two neighbouring columns are joined where
they have layers whose heights differ by at most a step. Everything here follows these joins, so
walking up a staircase leads to the next storey, and nothing leaks through a wall of one cell.

Frame: that of Habitat. Metres; y is up; heading 0 looks along -z and grows to the left, so the
forward direction is (-sin heading, -cos heading) in (x, z).

The distance field is computed by fast marching (Sethian, "A fast marching level set method for
monotonically advancing fronts", PNAS 1996) on the eight triangles around a cell, with the untidy
priority queue of Yatziv, Bartesaghi and Sapiro ("O(N) implementation of the fast marching
algorithm", J. Comput. Phys. 2006). Its error is well below one cell for each corner that the way
goes around, where plain Dijkstra on eight neighbours is up to 8 % too long.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel

#: Index into `FreeSpace.frame`.
F_X: Final = 0  # x of the outer corner of column (0, 0)
F_Z: Final = 1
F_CELL: Final = 2  # width of a column in metres
F_STEP: Final = 3  # largest difference of height that is walked over, in metres
N_FRAME: Final = 4

_DIAGONAL: Final = math.sqrt(2.0)
_BUCKETS: Final = 256  # of the queue; a power of two
_BUCKETS_PER_CELL: Final = 4.0
_EXACT: Final = 1.0  # metres around the goal in which distances are Euclidean
PARALLEL: Final = 1e-9  # a component of a direction that counts as none
_INFINITE: Final = np.float32(np.inf)
_OPEN: Final = 0  # a place that the front has not reached
_SETTLED: Final = 1
_WALL: Final = 2


@dataclass(frozen=True, eq=False)
class FreeSpace:
    """Where a body can stand. Immutable; equal spaces have equal digests.

    Attributes:
        heights: float32 ``(K, nz, nx)``, read-only: y of layer k of the column iz, ix; NaN where
            there is none. The outermost columns have none.
        origin: x and z of the outer corner of column (0, 0): column (iz, ix) covers
            ``origin + cell * (ix .. ix + 1, iz .. iz + 1)``.
        cell: width of a column in metres.
        step: largest difference in height between neighbouring columns that can be walked.

    Raises:
        ValueError: shapes or numbers that cannot be, or outermost columns that are not closed.
    """

    heights: NDArray[np.float32]
    origin: tuple[float, float]
    cell: float = 0.1
    step: float = 0.3
    frame: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        heights = np.array(self.heights, dtype=np.float32, order="C")
        if heights.ndim != 3 or min(heights.shape[1:]) < 3 or heights.shape[0] < 1:
            raise ValueError(
                f"heights must have the shape (K, nz, nx), at least (1, 3, 3), got {heights.shape}"
            )
        if not _close(heights):
            raise ValueError(
                "the outermost columns must be closed (NaN): add a margin of one column around"
            )
        if not (math.isfinite(self.cell) and self.cell > 0 and self.step >= 0):
            raise ValueError(
                f"cell must be positive and step not negative, got {self.cell} and {self.step}"
            )
        frame = np.array([*self.origin, self.cell, self.step], np.float64)
        if frame.shape != (N_FRAME,) or not np.isfinite(frame).all():
            raise ValueError(f"origin must be two finite numbers, got {self.origin}")
        heights.setflags(write=False)
        frame.setflags(write=False)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "frame", frame)

    @cached_property
    def digest(self) -> str:
        """BLAKE2b-128 of the content, as 32 hexadecimal digits."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(repr(self.heights.shape).encode())
        hasher.update(self.frame.tobytes())
        hasher.update(self.heights.tobytes())
        return hasher.hexdigest()

    @cached_property
    def clearance(self) -> NDArray[np.uint8]:
        """How far all columns around are free, for `cast_flat`; see the kernel `clearance_of`.

        Empty, uint8 ``(0, nx)``, unless there is one layer that is flat.
        """
        heights = self.heights[0]
        # Of no place at all, the relief is a NaN.
        relief = np.fmax.reduce(heights, axis=None) - np.fmin.reduce(heights, axis=None)
        if len(self.heights) > 1 or relief > self.step:
            return np.zeros((0, heights.shape[1]), np.uint8)
        return clearance_of(np.isnan(heights))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FreeSpace):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        layers, nz, nx = self.heights.shape
        return f"FreeSpace({layers} layers of {nz} x {nx} columns of {self.cell:g} m)"

    # -- places ------------------------------------------------------------------------------

    def locate(self, position: Any, tolerance: float = 0.5) -> tuple[int, int, int] | None:
        """Layer, iz and ix of the place whose column holds a position and whose height is nearest.

        Args:
            position: x, y, z.
            tolerance: largest difference in height.

        Returns:
            None if there is no such layer.
        """
        x, y, z = (float(v) for v in position)
        iz, ix, layer = locate(self.heights, self.frame, x, y, z, tolerance)
        return None if layer < 0 else (int(layer), int(iz), int(ix))

    def nearest(self, position: Any, reach: float = 1.0) -> NDArray[np.float64] | None:
        """The place where a body can stand that is nearest to a position, or None within reach.

        Args:
            position: x, y, z.
            reach: how far to look, in metres.
        """
        x, y, z = (float(v) for v in position)
        if self.locate(position) is not None:
            layer, iz, ix = self.locate(position)  # type: ignore[misc]
            return np.array([x, self.heights[layer, iz, ix], z])
        found = np.argwhere(np.isfinite(self.heights))
        if not len(found):
            return None
        centres = np.stack(
            [
                self.origin[0] + (found[:, 2] + 0.5) * self.cell,
                self.heights[tuple(found.T)],
                self.origin[1] + (found[:, 1] + 0.5) * self.cell,
            ],
            axis=1,
        )
        away = np.linalg.norm(centres - np.array([x, y, z]), axis=1)
        best = int(away.argmin())
        return centres[best] if away[best] <= reach else None

    # -- distances and ways ------------------------------------------------------------------

    def distances_to(self, goal: Any, tolerance: float = 0.5) -> NDArray[np.float32]:
        """Geodesic distance of every place to a goal: float32 ``(K, nz, nx)``, inf: no way.

        Args:
            goal: x, y, z.
            tolerance: see `locate`.

        Raises:
            ValueError: nobody can stand at the goal.
        """
        if self.locate(goal, tolerance) is None:
            raise ValueError(
                f"nobody can stand at the goal {[round(float(v), 3) for v in goal]}; use "
                "FreeSpace.nearest to find the place that is meant"
            )
        x, y, z = (float(v) for v in goal)
        distances = distance_field(self.heights, self.frame, x, y, z, tolerance)
        distances.setflags(write=False)
        return distances

    def distance(self, distances: NDArray[np.float32], position: Any) -> float:
        """Geodesic distance of a position by a field of `distances_to`; inf: none."""
        found = self.locate(position)
        if found is None:
            return math.inf
        x, _, z = (float(v) for v in position)
        return float(distance_at(self.heights, self.frame, distances, x, z, found[0]))

    def path(self, distances: NDArray[np.float32], start: Any, goal: Any) -> NDArray[np.float64]:
        """A shortest way from a start to the goal of a field, pulled straight.

        Args:
            distances: of `distances_to`.
            start, goal: x, y, z.

        Returns:
            float64 ``(n, 3)``: corners of the way, the start first and the goal last.

        Raises:
            ValueError: there is no way.
        """
        found = self.locate(start)
        if found is None or not math.isfinite(self.distance(distances, start)):
            raise ValueError(f"there is no way from {[round(float(v), 3) for v in start]}")
        x, _, z = (float(v) for v in start)
        corners = descend(self.heights, self.frame, distances, x, z, found[0])
        path = np.concatenate([corners, np.asarray(goal, np.float64)[None]])
        return np.ascontiguousarray(pull(self.heights, self.frame, path))

    def move(
        self, x: float, z: float, layer: int, heading: float, amount: float
    ) -> tuple[float, float, int, bool]:
        """Walk in a direction, sliding along walls; see the kernel `move`.

        Returns:
            x, z and layer afterwards, and whether something was in the way.
        """
        x, z, layer, collided = move(self.heights, self.frame, x, z, layer, heading, amount)
        return float(x), float(z), int(layer), bool(collided)


# --- kernels: places ----------------------------------------------------------------------------
@kernel
def _close(heights):
    """Make NaN of infinite heights; whether the outermost columns are closed."""
    flat = heights.reshape(heights.size)
    for index in range(len(flat)):
        if not np.isfinite(flat[index]):
            flat[index] = np.nan
    for k in range(heights.shape[0]):
        plane = heights[k]
        for edge in (0, -1):
            if not (np.isnan(plane[edge]).all() and np.isnan(plane[:, edge]).all()):
                return False
    return True


@kernel
def column(frame, value, axis):
    """Index of the column along an axis (0: x, 1: z) that holds a coordinate."""
    return np.int64(np.floor((value - frame[axis]) / frame[F_CELL]))


@kernel
def enter(heights, step, y, iz, ix):
    """Layer of a column that is entered from height y, or -1. A NaN is never within a step."""
    best, least = -1, step
    for k in range(heights.shape[0]):
        difference = abs(heights[k, iz, ix] - y)
        if difference <= least:
            best, least = k, difference
    return best


@kernel
def locate(heights, frame, x, y, z, tolerance):
    """iz, ix and layer of a position; the layer is -1 where there is none."""
    ix, iz = column(frame, x, F_X), column(frame, z, F_Z)
    if ix < 0 or iz < 0 or ix >= heights.shape[2] or iz >= heights.shape[1]:
        return iz, ix, -1
    return iz, ix, enter(heights, tolerance, y, iz, ix)


@kernel
def height_at(heights, frame, x, z, layer):
    """y of a place."""
    return np.float64(heights[layer, column(frame, z, F_Z), column(frame, x, F_X)])


@kernel
def linked(heights, step, layer, iz, ix, dz, dx):
    """Layer of a neighbouring column (dz, dx in -1, 0, 1) that is joined to a place, or -1.

    A diagonal neighbour is joined only if both columns beside the diagonal are.
    """
    y = heights[layer, iz, ix]
    beside = dz == 0 or dx == 0
    if not (beside or enter(heights, step, y, iz + dz, ix) >= 0):
        return -1
    if not (beside or enter(heights, step, y, iz, ix + dx) >= 0):
        return -1
    return enter(heights, step, y, iz + dz, ix + dx)


# --- kernels: walking and looking ---------------------------------------------------------------
@kernel
def _try(heights, frame, x, z, layer, ix, iz, dx, dz):
    """Layer, ix and iz after a small displacement (less than a cell); layer -1: not possible."""
    jx, jz = column(frame, x + dx, F_X), column(frame, z + dz, F_Z)
    if ix == jx and iz == jz:
        return layer, jx, jz
    step, y = frame[F_STEP], heights[layer, iz, ix]
    # Through a corner: not between two columns that are both closed.
    corner = ix != jx and iz != jz
    if corner and enter(heights, step, y, iz, jx) < 0 and enter(heights, step, y, jz, ix) < 0:
        return -1, jx, jz
    return enter(heights, step, y, jz, jx), jx, jz


@kernel
def move(heights, frame, x, z, layer, heading, amount):
    """Walk ``amount`` metres in small steps; where the way is closed, slide along the wall.

    Args:
        heights, frame: of a `FreeSpace`.
        x, z, layer: the place; it must be one where a body can stand.
        heading: radians.
        amount: metres, at least 0.

    Returns:
        x, z and layer afterwards, and whether something was in the way.
    """
    count = np.int64(np.ceil(amount / (0.5 * frame[F_CELL])))
    collided = False
    if count == 0:
        return x, z, layer, collided
    dx = -np.sin(heading) * amount / count
    dz = -np.cos(heading) * amount / count
    ix, iz = column(frame, x, F_X), column(frame, z, F_Z)
    for _ in range(count):
        after, jx, jz = _try(heights, frame, x, z, layer, ix, iz, dx, dz)
        if after >= 0:
            x, z, layer, ix, iz = x + dx, z + dz, after, jx, jz
            continue
        collided = True
        along_x = abs(dx) >= abs(dz)
        for _attempt in range(2):
            sx = dx if along_x else 0.0
            sz = 0.0 if along_x else dz
            after, jx, jz = _try(heights, frame, x, z, layer, ix, iz, sx, sz)
            if after >= 0 and (sx != 0.0 or sz != 0.0):
                x, z, layer, ix, iz = x + sx, z + sz, after, jx, jz
                break
            along_x = not along_x
    return x, z, layer, collided


@kernel
def cast(heights, frame, x, z, layer, dx, dz, reach):
    """How far one can see, or walk straight, in a direction, following the ground.

    Args:
        heights, frame: of a `FreeSpace`.
        x, z, layer: the place.
        dx, dz: unit vector.
        reach: metres at most.

    Returns:
        metres to where the ground ends (or a wall begins), at most ``reach``.
    """
    cell, step = frame[F_CELL], frame[F_STEP]
    gx, gz = (x - frame[F_X]) / cell, (z - frame[F_Z]) / cell
    ix, iz = np.int64(np.floor(gx)), np.int64(np.floor(gz))
    y = heights[layer, iz, ix]
    side_x = 1 if dx > 0.0 else -1
    side_z = 1 if dz > 0.0 else -1
    along_x, along_z = abs(dx) > PARALLEL, abs(dz) > PARALLEL
    per_x = cell / abs(dx) if along_x else np.inf
    per_z = cell / abs(dz) if along_z else np.inf
    next_x = (ix + 1 - gx if dx > 0.0 else gx - ix) * per_x if along_x else np.inf
    next_z = (iz + 1 - gz if dz > 0.0 else gz - iz) * per_z if along_z else np.inf
    single = heights.shape[0] == 1
    while True:
        if next_x < next_z:
            at = next_x
            next_x += per_x
            ix += side_x
        else:
            at = next_z
            next_z += per_z
            iz += side_z
        if at >= reach:
            return reach
        if single:
            height = heights[0, iz, ix]
            if not abs(height - y) <= step:
                return at
            y = height
        else:
            k = enter(heights, step, y, iz, ix)
            if k < 0:
                return at
            y = heights[k, iz, ix]


@kernel
def clearance_of(closed):
    """Chessboard distance to the nearest closed column: uint8 ``(nz, nx)``, 0 in closed ones.

    All columns within (distance - 1) of one in each direction are open.

    Args:
        closed: bool ``(nz, nx)``, true in the outermost columns.
    """
    nz, nx = closed.shape
    out = np.zeros((nz, nx), np.uint8)
    # A row is done in two loops: one over what does not depend on the column before, several
    # columns at a time, and one along the row.
    near = np.zeros(nx, np.int32)
    for iz in range(1, nz - 1):
        row, shut = out[iz], closed[iz]
        _least_beside(out[iz - 1], near)
        for ix in range(1, nx - 1):
            near[ix] = np.int64(not shut[ix]) * min(np.int64(near[ix]) + 1, np.int64(255))
        before = 0
        for ix in range(1, nx - 1):
            before = min(np.int64(near[ix]), before + 1)
            row[ix] = before
    for iz in range(nz - 2, 0, -1):
        row = out[iz]
        _least_beside(out[iz + 1], near)
        for ix in range(1, nx - 1):
            near[ix] = min(np.int64(near[ix]) + 1, np.int64(row[ix]))
        before = 0
        for ix in range(nx - 2, 0, -1):
            before = min(np.int64(near[ix]), before + 1)
            row[ix] = before
    return out


@kernel
def _least_beside(row, out):
    """Write the least value at a column and beside it, for all columns but the outermost."""
    for ix in range(1, len(row) - 1):
        out[ix] = min(min(row[ix - 1], row[ix]), row[ix + 1])


@kernel
def cast_flat(clearance, frame, x, z, dx, dz, reach):
    """The same as `cast` on flat ground, in strides as long as the clearance allows.

    Args:
        clearance: of `clearance_of`.
        frame: of a `FreeSpace`.
        x, z: the place.
        dx, dz: unit vector.
        reach: metres at most.
    """
    cell = frame[F_CELL]
    per_metre = 1.0 / cell
    gx, gz = (x - frame[F_X]) * per_metre, (z - frame[F_Z]) * per_metre
    most = reach * per_metre
    along_x, along_z = abs(dx) > PARALLEL, abs(dz) > PARALLEL
    per_x = 1.0 / dx if along_x else np.inf
    per_z = 1.0 / dz if along_z else np.inf
    ix, iz = np.int64(gx), np.int64(gz)
    at = 0.0
    while True:
        free = np.int64(clearance[iz, ix])
        if free == 0:
            return at * cell
        if free > 1:
            at += free - 1
            ix, iz = np.int64(gx + dx * at), np.int64(gz + dz * at)
        else:
            # Into the next column, by its number: so rounding cannot keep the line from going on.
            to_x = ((ix + 1 if dx > 0.0 else ix) - gx) * per_x if along_x else np.inf
            to_z = ((iz + 1 if dz > 0.0 else iz) - gz) * per_z if along_z else np.inf
            if to_x < to_z:
                at = max(at, to_x)
                ix += 1 if dx > 0.0 else -1
            else:
                at = max(at, to_z)
                iz += 1 if dz > 0.0 else -1
        if at >= most:
            return reach


@kernel
def clear(heights, frame, x, z, layer, to_x, to_z):
    """Whether one can walk straight from a place to a point; following the ground."""
    dx, dz = to_x - x, to_z - z
    length = np.sqrt(dx * dx + dz * dz)
    if length < 1e-9:
        return True
    return cast(heights, frame, x, z, layer, dx / length, dz / length, length) >= length


# --- kernels: distances -------------------------------------------------------------------------
@kernel
def _is_flat(heights):
    """Whether all places of one layer are at the same height."""
    height = np.float32(np.nan)
    for value in heights.ravel():
        if value == value:
            if height == height and value != height:
                return False
            height = value
    return True


@kernel
def _march_flat(flat, nx, cell, scale, field, head, following, place, count, waiting):
    """The march of `distance_field` on flat ground: the same numbers in much less time.

    Indices are unsigned wherever they can be: numba looks whether the others are negative.
    """
    straight, diagonal = np.sqrt(cell * cell), np.sqrt(2.0 * cell * cell)
    side = cell * cell
    state = np.empty(flat.shape[0], np.uint8)
    for index in range(flat.shape[0]):
        state[index] = _OPEN if flat[index] == flat[index] else _WALL
    # From a place to its neighbours; and across that way, or, of a diagonal, along z.
    steps = (-nx - 1, -nx, -nx + 1, -1, 1, nx - 1, nx, nx + 1)
    asides = (-nx, 1, -nx, nx, nx, nx, 1, nx)
    bucket, one, last = np.uint64(0), np.uint64(1), np.uint64(_BUCKETS - 1)
    while waiting > 0:
        if head[bucket] < 0:
            bucket = (bucket + one) & last
            continue
        entry = np.uint64(head[bucket])
        head[bucket] = following[entry]
        waiting -= 1
        index = np.int64(place[entry])
        if state[np.uint64(index)] != _OPEN:
            continue
        state[np.uint64(index)] = _SETTLED
        here = np.float64(field[np.uint64(index)])
        before = count
        for direction in range(8):
            step, aside = steps[direction], asides[direction]
            other = np.uint64(index + step)
            if state[other] != _OPEN:
                continue
            if direction == 0 or direction == 2 or direction == 5 or direction == 7:
                if state[np.uint64(index + aside)] == _WALL:
                    continue
                if state[np.uint64(index + step - aside)] == _WALL:
                    continue
                value = here + diagonal
            else:
                value = here + straight
                # The triangles of the neighbour, this place, and a place beside this one; no wall
                # cuts them.
                for across in (-aside, aside):
                    beside = np.uint64(index + across)
                    if state[beside] != _SETTLED:
                        continue
                    if state[np.uint64(index + step + across)] == _WALL:
                        continue
                    gain = here - np.float64(field[beside])
                    if gain > 0.0 and 2.0 * gain * gain < side:
                        value = min(value, here + np.sqrt(side - gain * gain))
            if value < field[other]:
                field[other] = value
                where = np.uint64(value * scale) & last
                new = np.uint64(count)
                place[new] = other
                following[new] = head[where]
                head[where] = count
                count += 1
        waiting += count - before


@kernel
def distance_field(heights, frame, x, y, z, tolerance):
    """Geodesic distance of every place to a goal: float32 ``(K, nz, nx)``, inf where no way leads.

    Args:
        heights, frame: of a `FreeSpace`.
        x, y, z: the goal.
        tolerance: largest difference between y and the ground there.
    """
    layers, nz, nx = heights.shape
    plane = nz * nx
    out = np.full((layers, nz, nx), _INFINITE, np.float32)
    field = out.reshape(layers * plane)
    flat = heights.reshape(layers * plane)
    cell, step = frame[F_CELL], frame[F_STEP]
    gz, gx, gk = locate(heights, frame, x, y, z, tolerance)
    if gk < 0:
        return out
    # The queue: buckets of a fraction of a cell, each a linked list of entries; an entry whose
    # place was settled meanwhile is ignored. Every place is entered at most once per neighbour.
    scale = _BUCKETS_PER_CELL / cell
    head = np.full(_BUCKETS, -1, np.int32)
    capacity = 9 * layers * plane
    following = np.empty(capacity, np.int32)
    place = np.empty(capacity, np.int32)
    settled = np.zeros(layers * plane, np.bool_)
    count = 0
    waiting = 0
    # Around the goal, where the front is most curved, distances are exact.
    reach = np.int64(_EXACT / cell)
    ground = heights[gk, gz, gx]
    for iz in range(max(1, gz - reach), min(nz - 1, gz + reach + 1)):
        for ix in range(max(1, gx - reach), min(nx - 1, gx + reach + 1)):
            k = enter(heights, step, ground, iz, ix)
            if k < 0:
                continue
            px = frame[F_X] + (ix + 0.5) * cell
            pz = frame[F_Z] + (iz + 0.5) * cell
            rise = np.float64(heights[k, iz, ix] - ground)
            away = np.sqrt((px - x) ** 2 + (pz - z) ** 2 + rise * rise)
            own = ix == gx and iz == gz
            if not own and (away > _EXACT or not clear(heights, frame, x, z, gk, px, pz)):
                continue
            index = k * plane + iz * nx + ix
            field[index] = away
            bucket = np.int64(away * scale) & (_BUCKETS - 1)
            place[count] = index
            following[count] = head[bucket]
            head[bucket] = count
            count += 1
            waiting += 1
    if layers == 1 and _is_flat(heights):
        _march_flat(flat, nx, cell, scale, field, head, following, place, count, waiting)
        return out
    bucket = 0
    links = np.empty(9, np.int64)  # joined place in each direction, (dz + 1) * 3 + dx + 1, or -1
    while waiting > 0:
        entry = head[bucket]
        if entry < 0:
            bucket = (bucket + 1) & (_BUCKETS - 1)
            continue
        head[bucket] = following[entry]
        waiting -= 1
        index = np.int64(place[entry])
        if settled[index]:
            continue
        settled[index] = True
        here = np.float64(field[index])
        height = np.float64(flat[index])
        k = index // plane
        iz, ix = (index - k * plane) // nx, (index - k * plane) % nx
        if layers == 1:
            for direction in range(9):
                other = index + (direction // 3 - 1) * nx + direction % 3 - 1
                links[direction] = other if abs(flat[other] - height) <= step else -1
            for direction in (0, 2, 6, 8):
                across = links[(direction // 3) * 3 + 1]
                if across < 0 or links[3 + direction % 3] < 0:
                    links[direction] = -1
        else:
            for direction in range(9):
                dz, dx = direction // 3 - 1, direction % 3 - 1
                joined = linked(heights, step, k, iz, ix, dz, dx)
                links[direction] = joined * plane + (iz + dz) * nx + ix + dx if joined >= 0 else -1
        for direction in range(9):
            other = links[direction]
            if direction == 4 or other < 0 or settled[other]:
                continue
            rise = np.float64(flat[other]) - height
            if direction % 2 == 0:
                value = here + np.sqrt(2.0 * cell * cell + rise * rise)
            else:
                side = cell * cell + rise * rise
                value = here + np.sqrt(side)
                # The two triangles of the neighbour, this place, and a place beside this one.
                for turn in range(2):
                    if direction == 1 or direction == 7:
                        beside = links[3] if turn == 0 else links[5]
                        corner = links[direction - 1] if turn == 0 else links[direction + 1]
                    else:
                        beside = links[1] if turn == 0 else links[7]
                        corner = links[direction - 3] if turn == 0 else links[direction + 3]
                    # `corner` lies between the two: then no wall cuts the triangle.
                    if beside < 0 or corner < 0 or not settled[beside]:
                        continue
                    gain = here - np.float64(field[beside])
                    if gain > 0.0 and 2.0 * gain * gain < side:
                        value = min(value, here + np.sqrt(side - gain * gain))
            if value < field[other]:
                field[other] = value
                where = np.int64(value * scale) & (_BUCKETS - 1)
                place[count] = other
                following[count] = head[where]
                head[where] = count
                count += 1
                waiting += 1
    return out


@kernel
def distance_at(heights, frame, field, x, z, layer):
    """Geodesic distance of a place by a distance field, between the centres of its cells.

    Args:
        heights, frame: of a `FreeSpace`.
        field: of `distance_field`.
        x, z, layer: the place.
    """
    cell, step = frame[F_CELL], frame[F_STEP]
    gx, gz = (x - frame[F_X]) / cell, (z - frame[F_Z]) / cell
    ix, iz = np.int64(np.floor(gx)), np.int64(np.floor(gz))
    # Bilinear where all four cells around can be stood on, as nearly everywhere.
    fx, fz = gx - 0.5, gz - 0.5
    jx, jz = np.int64(np.floor(fx)), np.int64(np.floor(fz))
    fx -= jx
    fz -= jz
    y = heights[layer, iz, ix]
    total, whole = 0.0, True
    for dz in range(2):
        for dx in range(2):
            k = enter(heights, step, y, jz + dz, jx + dx)
            if k < 0 or not field[k, jz + dz, jx + dx] < _INFINITE:
                whole = False
            else:
                weight = (fx if dx == 1 else 1.0 - fx) * (fz if dz == 1 else 1.0 - fz)
                total += weight * field[k, jz + dz, jx + dx]
    if whole:
        return total
    # Else by way of the best centre around.
    best = np.inf
    for dz in range(-1, 2):
        for dx in range(-1, 2):
            k = linked(heights, step, layer, iz, ix, dz, dx)
            if k >= 0:
                ex, ez = gx - (ix + dx + 0.5), gz - (iz + dz + 0.5)
                best = min(best, field[k, iz + dz, ix + dx] + cell * np.sqrt(ex * ex + ez * ez))
    return best


@kernel
def downhill(heights, frame, field, iz, ix, layer):
    """The joined neighbour whose way to the goal is shortest, as iz, ix, layer.

    That is the place itself at the goal.
    """
    cell, step = frame[F_CELL], frame[F_STEP]
    best_z, best_x, best_k = iz, ix, layer
    steepest = 0.0
    here = field[layer, iz, ix]
    for dz in range(-1, 2):
        for dx in range(-1, 2):
            if dz == 0 and dx == 0:
                continue
            k = linked(heights, step, layer, iz, ix, dz, dx)
            if k < 0:
                continue
            slope = (here - field[k, iz + dz, ix + dx]) / (cell * np.sqrt(dz * dz + dx * dx + 0.0))
            if slope > steepest:
                steepest = slope
                best_z, best_x, best_k = iz + dz, ix + dx, k
    return best_z, best_x, best_k


@kernel
def descend(heights, frame, field, x, z, layer):
    """The way down a distance field: float64 ``(n, 3)``, the place first, then centres of cells."""
    ix, iz = column(frame, x, F_X), column(frame, z, F_Z)
    capacity = 256
    out = np.empty((capacity, 3))
    out[0, 0], out[0, 1], out[0, 2] = x, heights[layer, iz, ix], z
    count = 1
    while True:
        jz, jx, k = downhill(heights, frame, field, iz, ix, layer)
        if jz == iz and jx == ix:
            break
        iz, ix, layer = jz, jx, k
        if count == capacity:
            larger = np.empty((2 * capacity, 3))
            larger[:capacity] = out
            out = larger
            capacity *= 2
        out[count, 0] = frame[F_X] + (ix + 0.5) * frame[F_CELL]
        out[count, 1] = heights[layer, iz, ix]
        out[count, 2] = frame[F_Z] + (iz + 0.5) * frame[F_CELL]
        count += 1
    return out[:count]


@kernel
def pull(heights, frame, path):
    """Pull a way straight: leave out points around which one can walk directly.

    Args:
        heights, frame: of a `FreeSpace`.
        path: float64 ``(n, 3)``; consecutive points lie in neighbouring columns.
    """
    out = np.empty_like(path)
    out[0] = path[0]
    count, at = 1, 0
    last = path.shape[0] - 1
    while at < last:
        x, y, z = path[at, 0], path[at, 1], path[at, 2]
        layer = locate(heights, frame, x, y, z, frame[F_STEP])[2]
        far = at + 1
        while far < last:
            if not clear(heights, frame, x, z, layer, path[far + 1, 0], path[far + 1, 2]):
                break
            far += 1
        out[count] = path[far]
        count += 1
        at = far
    return out[:count]


@kernel
def waypoint(heights, frame, field, x, z, layer, reach):
    """The farthest point of the way down a field to which one can walk straight.

    Args:
        heights, frame: of a `FreeSpace`.
        field: of `distance_field`.
        x, z, layer: the place.
        reach: steps of the way that are looked at.

    Returns:
        x and z of the point; the place itself at the goal.
    """
    ix, iz, k = column(frame, x, F_X), column(frame, z, F_Z), layer
    best_x, best_z = x, z
    for count in range(reach):
        jz, jx, k = downhill(heights, frame, field, iz, ix, k)
        if jz == iz and jx == ix:
            break
        iz, ix = jz, jx
        px = frame[F_X] + (ix + 0.5) * frame[F_CELL]
        pz = frame[F_Z] + (iz + 0.5) * frame[F_CELL]
        if count > 0 and not clear(heights, frame, x, z, layer, px, pz):
            break
        best_x, best_z = px, pz
    return best_x, best_z
