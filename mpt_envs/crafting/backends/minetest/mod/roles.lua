-- One turn: a role's decision, or nobody's; then gravity, the furnaces, and what is perceived.
local M = ...
local body = M.body

local LOGGER = {
	[1] = function() M.work_on(M.view.target[0], 0) end,
	[2] = function() M.explore(0) end,
	[3] = function() M.explore(1) end,
	[4] = function() M.explore(2) end,
	[5] = function() M.explore(3) end,
	[6] = function() M.climb() end,
}
local MINER = {
	[1] = function() M.work_on(M.view.target[1], 1) end,
	[2] = function() M.work_on(M.view.target[2], 2) end,
	[3] = function() M.work_on(M.view.target[3], 3) end,
	[4] = function() M.dig(body.cell - 1, true) end,
	[5] = function() M.tunnel(0) end,
	[6] = function() M.tunnel(1) end,
	[7] = function() M.tunnel(2) end,
	[8] = function() M.tunnel(3) end,
}
local function at_table(item)
	return function()
		if M.go_to(body.table_cell, 4) then M.craft(item) end
	end
end
local function place_table()
	local cell = M.place_station(M.I_TABLE, "mpt_body:workbench")
	if cell then body.table_cell = cell end
end
local function place_furnace()
	local cell = M.place_station(M.I_FURNACE, "default:furnace")
	if cell then body.furnace_cell = cell end
end
local SMITH = {
	[1] = function() M.tend_furnace() end,
	[2] = function() M.craft(M.I_PLANKS) end,
	[3] = function() M.craft(M.I_STICK) end,
	[4] = function() M.craft(M.I_TABLE) end,
	[5] = place_table,
	[6] = function() M.pick_up_table() end,
	[7] = at_table(M.I_WOODEN_PICK),
	[8] = at_table(M.I_STONE_PICK),
	[9] = at_table(M.I_IRON_PICK),
	[10] = at_table(M.I_FURNACE),
	[11] = place_furnace,
	[12] = function() M.pick_up_furnace() end,
	[13] = function() M.smelt(M.I_IRON_ORE) end,
	[14] = function() M.smelt(M.I_COBBLE) end,
	[15] = function() M.smelt(M.I_LOG) end,
	[16] = function() M.take_smelted() end,
	[17] = function() M.craft(M.I_TORCH) end,
	[18] = function() M.craft(M.I_BRICKS) end,
}
local ROLES = { [0] = LOGGER, MINER, SMITH }

-- `role` -1: nobody acts. `seed`: of the engine's dice in this turn (drops), so that no generator's
-- position is part of the state.
function M.turn(role, action, seed)
	math.randomseed(seed)
	M.events, M.outcome = {}, 1
	local ahead = M.last_mark() > body.clock
	if role < 0 then
		M.outcome = 3
		M.ticks(M.SKIP_TICKS)
		M.event(M.SKIPPED, 0, M.SKIP_TICKS)
	elseif action == 0 then
		M.ticks(M.WAIT_TICKS)
		M.event(M.WAITED, 0, M.WAIT_TICKS)
	else
		ROLES[role][action]()
	end
	M.settle()
	M.pass_time()
	if M.touched or ahead then M.perceive() end
end

-- All numbers of the state that the client keeps, in its order (record.py).
function M.report(out)
	local view, s = M.view, M.furnace_state()
	local inventory = M.inventory()
	local n = 0
	local function add(value)
		n = n + 1
		out[n] = value
	end
	add(M.outcome or 0)
	add(body.clock)
	add(M.x_of(body.cell))
	add(M.y_of(body.cell))
	add(M.z_of(body.cell))
	add(body.hp)
	add(body.seen)
	add(body.blocked)
	add(body.heading)
	add(body.table_cell)
	add(body.furnace_cell)
	add(s.input)
	add(s.input_count)
	add(s.fuel)
	add(s.fuel_count)
	add(s.output)
	add(s.output_count)
	add(math.floor(s.burn * 20 + 0.5))
	add(math.floor(s.progress * 1000 + 0.5))
	local logger, miner, smith = M.masks()
	add(logger)
	add(miner)
	add(smith)
	for item = 0, M.N_ITEMS - 1 do add(inventory.count[item]) end
	for item = M.I_WOODEN_PICK, M.I_IRON_PICK do add(inventory.wear[item] or 0) end
	for block = 0, 15 do add(body.dug[block]) end
	for block = 0, 15 do add(body.placed[block]) end
	for _, name in ipairs({ "target", "distance", "steps", "rise", "water", "feet", "head" }) do
		local values = view[name]
		for k = 0, 3 do add(values[k]) end
	end
	add(view.below)
	add(view.above)
	add(view.depth)
	add(view.covered)
	add(view.table_near)
	add(view.furnace_near)
	local given_up = 0
	for k = 0, 3 do
		if view.given_up[k] then given_up = given_up + 2 ^ k end
	end
	add(given_up)
	local events = M.events
	add(#events / 3)
	for i = 1, #events do add(events[i]) end
	add(#M.changed)
	for _, cell in ipairs(M.changed) do
		add(cell)
		add(M.K[cell])
	end
	M.changed = {}
	return n
end
