-- The body: where it stands, what it carries, and the time. The engine's functions take it for a
-- player.
local M = ...

local body = {}
M.body = body
M.events = {} -- of the running turn: event, argument, amount, event, ...

function M.event(event, argument, amount)
	local events = M.events
	events[#events + 1] = event
	events[#events + 1] = argument
	events[#events + 1] = amount
end

-- Everything about the body that is a number. -1 stands for "none" in a cell.
local NUMBERS = { "cell", "hp", "clock", "heading", "table_cell", "furnace_cell", "seen", "fed",
	"blocked", "mark_next" }
M.NUMBERS = NUMBERS
M.N_MARKS = 8

function M.new_body(cell)
	body.cell, body.hp, body.clock, body.heading = cell, 20, 0, -1
	body.table_cell, body.furnace_cell, body.seen, body.fed = -1, -1, 0, 0
	body.blocked, body.mark_next = 0, 0
	body.marks = {} -- cell, clock from which it counts again
	for i = 1, 2 * M.N_MARKS do body.marks[i] = i % 2 == 1 and -1 or 0 end
	body.dug, body.placed = {}, {}
	for block = 0, 15 do
		body.dug[block] = 0
		body.placed[block] = 0
	end
	body.inv:set_list("main", {})
	body.wield = 1
	M.inventory_changed()
end

function M.spend(milliticks) body.clock = body.clock + milliticks end
function M.ticks(ticks) body.clock = body.clock + ticks * M.TICK end

function M.stand(cell)
	if cell ~= body.cell then M.touched = true end
	body.cell = cell
end

function M.body_is_at(p)
	local cell = M.cell_at(p)
	return cell ~= nil and (cell == body.cell or cell == body.cell + 1)
end

-- ---- the inventory -------------------------------------------------------------------------

local SLOTS = 32
M.SLOTS = SLOTS
local summary = nil
function M.inventory_changed() summary = nil end

-- Counts per item, names per item in order, the slot of each pickaxe, and its wear.
function M.inventory()
	if summary then return summary end
	local s = { count = {}, names = {}, slot = {}, wear = {}, empty = nil }
	for item = 0, M.N_ITEMS - 1 do s.count[item] = 0 end
	local by_name = {}
	for slot, stack in ipairs(body.inv:get_list("main")) do
		if stack:is_empty() then
			s.empty = s.empty or slot
		else
			local name = stack:get_name()
			local item = M.item[name]
			if item then
				s.count[item] = s.count[item] + stack:get_count()
				if not by_name[name] then
					s.names[item] = s.names[item] or {}
					table.insert(s.names[item], name)
				end
				by_name[name] = (by_name[name] or 0) + stack:get_count()
				if item >= M.I_WOODEN_PICK and not s.slot[item] then
					s.slot[item] = slot
					s.wear[item] = stack:get_wear()
				end
			end
		end
	end
	for _, names in pairs(s.names) do table.sort(names) end
	s.by_name = by_name
	summary = s
	return s
end

function M.count(item) return M.inventory().count[item] end

-- Put something into the inventory; what does not fit is lost. Returns how much was kept.
function M.gain(stack)
	stack = ItemStack(stack)
	if stack:is_empty() then return 0 end
	local item = M.item[stack:get_name()]
	local left = body.inv:add_item("main", stack)
	local kept = stack:get_count() - left:get_count()
	if item and kept > 0 and math.floor(body.seen / 2 ^ item) % 2 == 0 then
		body.seen = body.seen + 2 ^ item
	end
	M.inventory_changed()
	return kept
end

function M.take(name, count)
	body.inv:remove_item("main", name .. " " .. count)
	M.inventory_changed()
end

-- The names that so many of an item are taken from, in order: name, count, name, count, ...
function M.pick_names(item, count)
	local s, out = M.inventory(), {}
	for _, name in ipairs(s.names[item] or {}) do
		local n = math.min(count, s.by_name[name])
		if n > 0 then
			out[#out + 1] = name
			out[#out + 1] = n
			count = count - n
		end
	end
	return out, count == 0
end

-- ---- what the engine asks a player ---------------------------------------------------------

local Body = {}
Body.__index = Body
function Body:is_player() return true end
function Body:get_player_name() return "" end
function Body:get_pos()
	local p = M.pos(body.cell)
	return vector.new(p.x, p.y - 0.5, p.z)
end
function Body:get_inventory() return body.inv end
function Body:get_wield_index() return body.wield end
function Body:get_wield_list() return "main" end
function Body:get_wielded_item() return body.inv:get_stack("main", body.wield) end
function Body:set_wielded_item(stack)
	body.inv:set_stack("main", body.wield, stack)
	M.inventory_changed()
	return true
end
function Body:get_look_dir() return vector.new(0, 0, 1) end
function Body:get_look_horizontal() return 0 end
function Body:get_look_vertical() return 0 end
function Body:get_player_control() return { sneak = false, aux1 = false } end
function Body:get_player_control_bits() return 0 end
function Body:get_properties() return { eye_height = 1.625 } end
function Body:get_hp() return body.hp end
function Body:set_hp(hp) body.hp = hp end
M.player = setmetatable({}, Body)

minetest.register_on_mods_loaded(function()
	body.inv = minetest.create_detached_inventory("mpt_body", {})
	body.inv:set_size("main", SLOTS)
	M.new_body(M.cell(1, 1, 1))
end)

-- Drops go to the body at once.
function minetest.handle_node_drops(_, drops)
	for _, drop in ipairs(drops) do
		local stack = ItemStack(drop)
		local kept = M.gain(stack)
		if kept > 0 and M.on_drop then M.on_drop(M.item[stack:get_name()], kept) end
	end
end

-- ---- marks: targets to which no way led ------------------------------------------------------

function M.is_marked(cell)
	local marks = body.marks
	for i = 1, 2 * M.N_MARKS, 2 do
		if marks[i] == cell and marks[i + 1] > body.clock then return true end
	end
	return false
end

function M.last_mark()
	local last = 0
	for i = 2, 2 * M.N_MARKS, 2 do last = math.max(last, body.marks[i]) end
	return last
end

function M.give_up(cell, kind)
	local at = 2 * body.mark_next
	body.marks[at + 1] = cell
	body.marks[at + 2] = body.clock + M.GIVE_UP_TICKS * M.TICK
	body.mark_next = (body.mark_next + 1) % M.N_MARKS
	body.blocked = body.blocked + 1
	M.ticks(M.BLOCKED_TICKS)
	M.event(M.BLOCKED, kind, 0)
	M.outcome = 2
	M.touched = true
end
