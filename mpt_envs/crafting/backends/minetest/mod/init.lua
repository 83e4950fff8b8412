-- The server's side of the backend: a world mod that gives one Python client a body in the engine.
--
-- The client asks (bridge.lua), a body acts by the engine's own functions (work.lua, moves.lua),
-- and is told what it perceives (eyes.lua). Game time passes only when an action takes time. The
-- numbers that cross the socket are those of the record of a world (layout.py, facts.py).
local here = minetest.get_modpath(minetest.get_current_modname())
local insecure = assert(minetest.request_insecure_environment(),
	"mpt_body must be listed in secure.trusted_mods")

local M = {} -- shared by the files of this mod, and by nothing else

for _, part in ipairs({ "codes", "engine", "mapgen", "items", "arena", "body", "eyes", "moves",
	"work", "masks", "roles", "terrain", "state", "bridge" }) do
	assert(loadfile(here .. "/" .. part .. ".lua"))(M, insecure)
end
