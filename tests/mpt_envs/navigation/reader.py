"""A person who follows an instruction: knows the house as far as it can be seen, not the route."""

from __future__ import annotations

import math

from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world.clauses import Clause
from mpt_envs.navigation.world.cues import angle_between
from mpt_envs.navigation.world.floorplan import CELL, House

Point = tuple[float, float]
TURNED = {c.LEFT: 90.0, c.RIGHT: -90.0, c.AROUND: 180.0}
WANTED = {c.LEFT: 90.0, c.RIGHT: -90.0, c.AHEAD: 0.0}


class LostError(Exception):
    """The instruction does not say what to do here, or says something that is not so."""


class Reader:
    """Walks from room to room as the clauses say.

    Args:
        house: where.
        room: number of the room at the start.
        at, heading: the start; heading in degrees.
    """

    def __init__(self, house: House, room: int, at: Point, heading: float) -> None:
        self.house, self.room, self.at = house, room, at
        self.came = -1
        self.doors: list[int] = []
        self._face(heading)

    def _face(self, degrees: float) -> None:
        self.heading = degrees % 360.0
        turn = math.radians(self.heading)
        self.forward = (-math.sin(turn), -math.cos(turn))

    def follow(self, clauses: list[Clause]) -> Clause:
        """Do everything; returns the stop."""
        for clause in clauses:
            if clause.kind == c.TURN:
                self._turn(clause)
            elif clause.kind == c.EXIT:
                self._exit(clause)
            elif clause.kind == c.ENTER:
                self._enter(clause)
            elif clause.kind == c.STRAIGHT:
                self._along(clause)
            elif clause.kind in (c.PASS, c.APPROACH):
                self._thing(clause.thing)
            elif clause.kind == c.STOP:
                return clause
        raise LostError("no stop")

    def _hall(self) -> bool:
        return self.house.kind(self.room) == "hallway"

    def _turn(self, clause: Clause) -> None:
        self._face(self.heading + TURNED[clause.turn])
        if self._hall():
            # One turns into the hallway, not against its wall.
            self._face_along()

    def _face_along(self) -> None:
        rect = self.house.rooms[self.room].rect
        axis = (90.0, 270.0) if rect.width >= rect.depth else (0.0, 180.0)
        self._face(min(axis, key=lambda a: abs((a - self.heading + 180.0) % 360.0 - 180.0)))

    def _along(self, clause: Clause) -> None:
        if clause.room != self.house.rooms[self.room].kind:
            raise LostError(f"{clause}, but this is the {self.house.kind(self.room)}")
        if self._hall():
            self._face_along()

    def _thing(self, kind: int) -> None:
        if [t.kind for t in self.house.things if t.room == self.room].count(kind) != 1:
            raise LostError(f"there is not one {kind} in the {self.house.kind(self.room)}")

    def _candidates(self) -> list[int]:
        return [d for d in self.house.exits(self.room) if d != self.came]

    def _exit(self, clause: Clause) -> None:
        if clause.room != self.house.rooms[self.room].kind:
            raise LostError(f"{clause}, but this is the {self.house.kind(self.room)}")
        doors = self._candidates()
        if len(doors) != 1:
            raise LostError(f"{clause}, but there are {len(doors)} doors")
        self._go(doors[0])

    def _enter(self, clause: Clause) -> None:
        doors = self._candidates()
        if clause.room:
            doors = [
                d
                for d in doors
                if self.house.rooms[self.house.beyond(d, self.room)].kind == clause.room
            ]
        if clause.side and len(doors) > 1:
            if clause.side == c.END:
                doors = self._at_the_end(doors)
            elif self._hall() and clause.side != c.AHEAD:
                doors = self._beside(doors, clause)
            else:
                doors = self._towards(doors, WANTED[clause.side])
        if len(doors) != 1:
            raise LostError(f"{clause}, but {len(doors)} doors are like that")
        self._go(doors[0])

    def _towards(self, doors: list[int], wanted: float) -> list[int]:
        """The door in a direction, if it is clearly more so than the others."""
        off = sorted((abs((self._angle(d) - wanted + 180.0) % 360.0 - 180.0), d) for d in doors)
        if off[0][0] > 60.0:
            return []
        return [d for a, d in off if a < off[0][0] + 5.0]

    def _beside(self, doors: list[int], clause: Clause) -> list[int]:
        """The door of a number on one side of the hallway."""
        rect = self.house.rooms[self.room].rect
        along_x = rect.width >= rect.depth
        found = []
        for door in doors:
            if self.house.doors[door].along_x == along_x:
                continue  # at an end of the hallway
            x, z = self.house.doors[door].rect.centre
            ahead = (x - self.at[0]) * self.forward[0] + (z - self.at[1]) * self.forward[1]
            middle = rect.centre
            side = angle_between(self.forward, (x - middle[0], z - middle[1]))
            if ahead > 0 and (side > 0) == (clause.side == c.LEFT):
                found.append((ahead, door))
        found.sort()
        if not clause.ordinal:
            return [d for _, d in found]
        return [found[clause.ordinal - 1][1]] if len(found) >= clause.ordinal else []

    def _at_the_end(self, doors: list[int]) -> list[int]:
        """The doors in the wall towards which one walks along a hallway."""
        rect = self.house.rooms[self.room].rect
        along_x = rect.width >= rect.depth
        return [
            d
            for d in doors
            if self.house.doors[d].along_x == along_x and abs(self._angle(d)) < 90.0
        ]

    def _angle(self, door: int) -> float:
        x, z = self.house.doors[door].rect.centre
        return angle_between(self.forward, (x - self.at[0], z - self.at[1]))

    def _go(self, door: int) -> None:
        found = self.house.doors[door]
        self.room = self.house.beyond(door, self.room)
        self.came = door
        self.doors.append(door)
        x, z = self.at = found.rect.centre
        beyond = self.house.rooms[self.room].rect.centre
        if found.along_x:
            self._face(270.0 if beyond[0] > x else 90.0)
        else:
            self._face(180.0 if beyond[1] > z else 0.0)

    def stop_at(self, stop: Clause, approached: int) -> Point:
        """Where the instruction ends: beside the thing, or just inside the room."""
        kind = stop.thing if stop.thing >= 0 else approached
        if kind >= 0:
            self._thing(kind)
            thing = next(t for t in self.house.things if t.room == self.room and t.kind == kind)
            return thing.rect.centre
        if stop.room != self.house.rooms[self.room].kind:
            raise LostError(f"{stop}, but this is the {self.house.kind(self.room)}")
        return self.at[0] + self.forward[0] * 10 * CELL, self.at[1] + self.forward[1] * 10 * CELL
