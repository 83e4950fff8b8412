-- Nothing in the engine may happen by the clock on the wall or by the process's own dice.
local M = ...

-- Entities move in real time. What falls settles at once instead; what is dropped beside the body
-- (an overflowing inventory, a flower that lost its ground) is lost.
local check_single_for_falling = minetest.check_single_for_falling
function minetest.check_single_for_falling(p)
	local node = minetest.get_node(p)
	if minetest.get_item_group(node.name, "falling_node") == 0 then
		if minetest.get_item_group(node.name, "attached_node") == 0 then return false end
		return check_single_for_falling(p)
	end
	local y = p.y
	while true do
		local below = { x = p.x, y = y - 1, z = p.z }
		local def = minetest.registered_nodes[minetest.get_node(below).name]
		if not def or (def.walkable and not def.buildable_to) or M.body_is_at(below) then break end
		y = y - 1
	end
	if y == p.y then return false end
	minetest.remove_node(p)
	minetest.set_node({ x = p.x, y = y, z = p.z }, node)
	return true
end

function minetest.add_item() return nil end
function minetest.add_entity() return nil end
function minetest.spawn_falling_node() return false end
function minetest.sound_play() return 0 end
function minetest.sound_fade() end
function minetest.add_particlespawner() return 0 end

minetest.register_on_mods_loaded(function()
	-- Timers of mods (sounds, weather) run by the wall clock and touch nothing that agents see.
	function minetest.after() return { cancel = function() end } end
	-- Leaves decay by node timers with random times; nothing here needs that.
	for name, def in pairs(minetest.registered_nodes) do
		if minetest.get_item_group(name, "tree") ~= 0 and def.after_destruct then
			minetest.override_item(name, { after_destruct = function() end })
		end
	end
	-- Chests in dungeons, butterflies and the like roll dice when a chunk is generated.
	for i = #minetest.registered_on_generateds, 1, -1 do
		table.remove(minetest.registered_on_generateds, i)
	end
end)
