-- What hands do: dig, place, craft, use the furnace. Each by the engine's own functions.
local M = ...
local K = M.K
local body = M.body

-- ---- digging -----------------------------------------------------------------------------------

local PICKS = { [1] = M.I_WOODEN_PICK, [2] = M.I_STONE_PICK, [3] = M.I_IRON_PICK }
local PICK_NAMES = { [0] = "", "default:pick_wood", "default:pick_stone", "default:pick_steel" }

-- Seconds that a node takes with the hand (0) and each pickaxe, or false: asked of the engine once.
local dig_times = {}
local function times_of(name)
	local times = dig_times[name]
	if not times then
		times = {}
		local def = minetest.registered_nodes[name]
		for tool = 0, 3 do
			local capabilities = ItemStack(PICK_NAMES[tool]):get_tool_capabilities()
			local params = minetest.get_dig_params(def.groups, capabilities)
			times[tool] = def.diggable and params.diggable and params.time
		end
		dig_times[name] = times
	end
	return times
end

-- The quickest way to dig a node with what is carried: level of the tool and seconds, or nil.
function M.best_tool(name)
	local times, slots = times_of(name), M.inventory().slot
	local best, least = nil, nil
	for tool = 0, 3 do
		if times[tool] and (tool == 0 or slots[PICKS[tool]]) and (not least or times[tool] < least)
		then
			best, least = tool, times[tool]
		end
	end
	return best, least
end

function M.can_dig(cell)
	local block = K[cell]
	return block > M.WATER and block < M.BEDROCK and M.best_tool(M.name_at(cell)) ~= nil
end

function M.pickaxe_level()
	local slots = M.inventory().slot
	for level = 3, 1, -1 do
		if slots[PICKS[level]] then return level end
	end
	return 0
end

local function wield(tool)
	local s = M.inventory()
	body.wield = tool == 0 and (s.empty or M.SLOTS) or s.slot[PICKS[tool]]
end

-- Dig one node; whether the engine let it. `tell`: write an event of what it dropped.
function M.dig(cell, tell)
	local position, block = M.pos(cell), K[cell]
	local node = minetest.get_node(position)
	local tool, seconds = M.best_tool(node.name)
	if not tool then return false end
	wield(tool)
	local dropped = false
	M.on_drop = function(item, amount)
		if tell and item then M.event(M.GOT, item, amount) end
		dropped = dropped or item ~= nil
	end
	local done = minetest.node_dig(position, node, M.player)
	M.on_drop = nil
	if not done then return false end
	M.spend(math.floor(seconds * M.SECOND + 0.5))
	M.ticks(M.BREAK_DELAY_TICKS)
	body.dug[block] = body.dug[block] + 1
	if tell and not dropped then M.event(M.BROKE, block, 1) end
	if tool > 0 and not M.inventory().slot[PICKS[tool]] then
		M.event(M.TOOL_BROKE, PICKS[tool], 1)
	end
	if cell == body.table_cell then body.table_cell = -1 end
	if cell == body.furnace_cell then body.furnace_cell = -1 end
	return true
end

-- Dig until a cell is open: sand and gravel slide down again.
function M.dig_out(cell)
	for _ = 1, 12 do
		if K[cell] <= M.WATER then return true end
		if not M.can_dig(cell) or not M.dig(cell) then return false end
	end
	return K[cell] <= M.WATER
end

local function clear_leaves(target)
	for _, cell in ipairs(M.leaves_before(body.cell, target)) do M.dig(cell) end
end

-- Walk to a block and dig it.
function M.work_on(target, kind)
	if not M.go_to(target, kind) then return false end
	clear_leaves(target)
	return M.dig(target, true)
end

-- ---- placing -----------------------------------------------------------------------------------

-- Place one of an item into a cell; whether the engine let it.
function M.put(name, cell)
	for slot, stack in ipairs(body.inv:get_list("main")) do
		if stack:get_name() == name then
			body.wield = slot
			local def = stack:get_definition()
			local position = M.pos(cell)
			local pointed = { type = "node", under = position, above = vector.new(position) }
			local block = K[cell]
			local left = (def.on_place or minetest.item_place)(stack, M.player, pointed)
			if left then body.inv:set_stack("main", slot, left) end
			M.inventory_changed()
			if K[cell] == block then return false end
			body.placed[K[cell]] = body.placed[K[cell]] + 1
			return true
		end
	end
	return false
end

local FILLERS = { M.I_DIRT, M.I_SAND, M.I_GRAVEL, M.I_COBBLE, M.I_STONE }
M.FILLERS = FILLERS

function M.filler_count()
	local count, total = M.inventory().count, 0
	for _, item in ipairs(FILLERS) do total = total + count[item] end
	return total
end

-- Put a table or furnace beside the feet, into a free cell or else into a niche dug for it.
function M.place_station(item, name)
	local feet, spot = body.cell, nil
	for direction = 0, 3 do
		local cell = feet + M.STEP[direction]
		if K[cell] <= M.WATER and (not spot or (K[spot - 1] <= M.WATER and K[cell - 1] > M.WATER))
		then
			spot = cell
		end
	end
	if not spot then
		for direction = 0, 3 do
			local cell = feet + M.STEP[direction]
			if K[cell] < M.TABLE and M.can_dig(cell) then
				spot = cell
				break
			end
		end
		if not spot or not M.dig_out(spot) then return nil end
	end
	M.ticks(M.PLACE_TICKS)
	if not M.put(name, spot) then return nil end
	M.event(M.PLACED, item, 1)
	return spot
end

-- Straight up: dig what is overhead and pile up blocks under the feet.
function M.climb()
	local levels = 0
	while levels < M.CLIMB_LEVELS do
		local feet = body.cell
		local y = M.y_of(feet)
		if M.ground[M.column_of(feet)] + 1 - y <= 0 or y >= M.HEIGHT - 3 then break end
		if K[feet + 2] > M.WATER and not M.dig_out(feet + 2) then break end
		local name = nil
		for _, item in ipairs(FILLERS) do
			local names = M.inventory().names[item]
			if names then
				name = names[1]
				break
			end
		end
		if not name then break end
		M.stand(feet + 1)
		M.ticks(M.PILLAR_TICKS)
		if not M.put(name, feet) then
			M.stand(feet)
			break
		end
		levels = levels + 1
	end
	M.event(M.CLIMBED, 0, levels)
end

-- A passage two high and up to TUNNEL_LENGTH long, and into it.
function M.tunnel(direction)
	local moved, got = 0, M.count(M.I_COBBLE)
	for _ = 1, M.TUNNEL_LENGTH do
		local feet = body.cell
		local ahead = feet + M.STEP[direction]
		local low, high = K[ahead], K[ahead + 1]
		if low >= M.TABLE or high >= M.TABLE or low == M.WATER or high == M.WATER then break end
		if not M.dig_out(ahead + 1) or not M.dig_out(ahead) then break end
		local after = M.walk_step(feet, direction)
		if not after or after > ahead then break end
		M.spend(M.step_cost(feet, after, direction))
		M.stand(after)
		moved = moved + 1
		if after ~= ahead then break end
	end
	body.heading = direction
	M.event(M.TUNNELLED, direction, moved)
	got = M.count(M.I_COBBLE) - got
	if got > 0 then M.event(M.GOT, M.I_COBBLE, got) end
end

-- ---- crafting ----------------------------------------------------------------------------------

local P, S, C, I = M.I_PLANKS, M.I_STICK, M.I_COBBLE, M.I_INGOT
-- Width of the grid and what lies in it, row by row.
local GRIDS = {
	[M.I_PLANKS] = { 1, { M.I_LOG } },
	[M.I_STICK] = { 1, { P } },
	[M.I_TABLE] = { 2, { P, P, P, P } },
	[M.I_WOODEN_PICK] = { 3, { P, P, P, false, S, false, false, S, false } },
	[M.I_STONE_PICK] = { 3, { C, C, C, false, S, false, false, S, false } },
	[M.I_IRON_PICK] = { 3, { I, I, I, false, S, false, false, S, false } },
	[M.I_FURNACE] = { 3, { C, C, C, C, false, C, C, C, C } },
	[M.I_TORCH] = { 1, { M.I_COAL, S } },
	[M.I_BRICKS] = { 2, { M.I_STONE, M.I_STONE, M.I_STONE, M.I_STONE } },
}
local needs = {}
for item, grid in pairs(GRIDS) do
	needs[item] = {}
	for _, part in ipairs(grid[2]) do
		if part then needs[item][part] = (needs[item][part] or 0) + 1 end
	end
end

function M.can_craft(item)
	local count = M.inventory().count
	for part, n in pairs(needs[item]) do
		if count[part] < n then return false end
	end
	return true
end

-- Craft once by the engine's recipe; whether there is one.
function M.craft(item)
	local pools = {}
	for part, n in pairs(needs[item]) do
		local names, enough = M.pick_names(part, n)
		if not enough then return false end
		pools[part] = {}
		for i = 1, #names, 2 do
			for _ = 1, names[i + 1] do table.insert(pools[part], names[i]) end
		end
	end
	local width, grid = GRIDS[item][1], GRIDS[item][2]
	local items, used = {}, {}
	for i, part in ipairs(grid) do
		local name = part and table.remove(pools[part]) or ""
		items[i] = ItemStack(name)
		if part then used[#used + 1] = name end
	end
	local out, rest = minetest.get_craft_result({ method = "normal", width = width, items = items })
	if out.item:is_empty() or M.item[out.item:get_name()] ~= item then return false end
	for _, name in ipairs(used) do M.take(name, 1) end
	local made = M.gain(out.item)
	for _, stack in ipairs(rest.items) do M.gain(stack) end
	for _, stack in ipairs(out.replacements) do M.gain(stack) end
	M.ticks(M.CRAFT_TICKS)
	M.event(M.CRAFTED, item, made)
	return true
end

-- ---- the furnace -------------------------------------------------------------------------------

local function furnace()
	local position = M.pos(body.furnace_cell)
	local def = minetest.registered_nodes[minetest.get_node(position).name]
	local meta = minetest.get_meta(position)
	return position, def, meta, meta:get_inventory()
end

local fuel_times = {} -- name -> seconds
local function fuel_time(name)
	if not fuel_times[name] then
		local query = { method = "fuel", width = 1, items = { ItemStack(name) } }
		fuel_times[name] = minetest.get_craft_result(query).time
	end
	return fuel_times[name]
end

local cooked = {} -- name -> { seconds, item }
local function cooking(name)
	if not cooked[name] then
		local query = { method = "cooking", width = 1, items = { ItemStack(name) } }
		local result = minetest.get_craft_result(query)
		cooked[name] = { result.time, M.item[result.item:get_name()] }
	end
	return cooked[name]
end

-- What is in the furnace, as the record has it: items, counts, milliticks of fire, thousandths done.
local NO_FURNACE = { input = -1, input_count = 0, fuel = -1, fuel_count = 0, output = -1,
	output_count = 0, burn = 0, progress = 0, input_name = "", fuel_name = "", seconds = 0 }
function M.furnace_state()
	if body.furnace_cell < 0 then return NO_FURNACE end
	local _, _, meta, inv = furnace()
	local src, fuel = inv:get_stack("src", 1), inv:get_stack("fuel", 1)
	local s = {
		input = M.item[src:get_name()] or -1, input_count = src:get_count(),
		fuel = M.item[fuel:get_name()] or -1, fuel_count = fuel:get_count(),
		output = -1, output_count = 0, progress = 0, seconds = 0,
		input_name = src:get_name(), fuel_name = fuel:get_name(),
		burn = math.max(0, meta:get_float("fuel_totaltime") - meta:get_float("fuel_time")),
	}
	for _, stack in ipairs(inv:get_list("dst")) do
		if not stack:is_empty() then
			s.output = M.item[stack:get_name()] or -1
			s.output_count = s.output_count + stack:get_count()
		end
	end
	if s.input_count > 0 then
		s.seconds = cooking(s.input_name)[1]
		if s.seconds > 0 then s.progress = meta:get_float("src_time") / s.seconds end
	end
	return s
end

function M.smelt_amount(item)
	local count = M.count(item)
	if item == M.I_COBBLE then return math.min(count, M.SMELT_BATCH) end
	if item == M.I_LOG then return math.min(count, 1) end
	return count
end

-- Seconds of fire that the furnace lacks for what is in it and `amount` more of an item.
local function fuel_needed(s, name, amount)
	local seconds = cooking(name)[1]
	local wanted = (s.input_count + amount) * seconds - s.progress * s.seconds
	local fire = s.burn
	if s.fuel_count > 0 then fire = fire + s.fuel_count * fuel_time(s.fuel_name) end
	return wanted - fire
end

local FUELS = { M.I_COAL, M.I_PLANKS, M.I_LOG, M.I_STICK }

-- The fuel to feed: the first kind that is enough, else the one that lasts longest. A name and how
-- many there are, or nil.
local function choose_fuel(s, needed, kept_name, kept)
	local inventory = M.inventory()
	local best, best_count, best_time = nil, 0, 0
	for _, item in ipairs(FUELS) do
		for _, name in ipairs(inventory.names[item] or {}) do
			if s.fuel_count == 0 or s.fuel_name == name then
				local count = inventory.by_name[name]
				if name == kept_name then count = count - kept end
				local time = count * fuel_time(name)
				if count > 0 and time >= needed then return name, count end
				if time > best_time then best, best_count, best_time = name, count, time end
			end
		end
	end
	return best, best_count
end

-- What a smelting action would load: name, amount, fuel's name, its amount; nil if nothing.
local function load_of(item)
	local s = M.furnace_state()
	if s.input_count > 0 and s.input ~= item then return nil end
	local names = M.inventory().names[item]
	local name = s.input_count > 0 and s.input_name or (names and names[1])
	if not name then return nil end
	local seconds, product = cooking(name)[1], cooking(name)[2]
	if seconds == 0 or not product then return nil end
	if s.output_count > 0 and s.output ~= product then return nil end
	local amount = math.min(M.smelt_amount(item), M.inventory().by_name[name] or 0)
	if amount == 0 and s.input_count == 0 then return nil end
	local needed = fuel_needed(s, name, amount)
	if needed <= 0 then
		if amount == 0 then return nil end
		return name, amount, nil, 0
	end
	local fuel, count = choose_fuel(s, needed, name, amount)
	if not fuel then return nil end
	return name, amount, fuel, math.min(count, math.ceil(needed / fuel_time(fuel)))
end

function M.can_smelt(item) return load_of(item) ~= nil end

local function feed(slot, name, count)
	local position, def, _, inv = furnace()
	local stack = ItemStack(name .. " " .. count)
	local allowed = def.allow_metadata_inventory_put(position, slot, 1, stack, M.player)
	stack:set_count(math.min(allowed, count))
	if stack:is_empty() or not inv:room_for_item(slot, stack) then return 0 end
	M.take(name, stack:get_count())
	inv:add_item(slot, stack)
	-- A furnace that burns has no such callback: its timer runs already.
	if def.on_metadata_inventory_put then
		def.on_metadata_inventory_put(position, slot, 1, stack, M.player)
	end
	return stack:get_count()
end

function M.smelt(item)
	if not M.go_to(body.furnace_cell, 5) then return end
	M.pass_time()
	local name, amount, fuel, count = load_of(item)
	local loaded = 0
	if name and amount > 0 then loaded = feed("src", name, amount) end
	if fuel then feed("fuel", fuel, count) end
	M.ticks(M.PLACE_TICKS)
	M.event(M.SMELTING, item, loaded)
end

-- Take a list out of the furnace; item and amount of the last stack.
local function empty(list)
	local position, def, _, inv = furnace()
	local item, amount = nil, 0
	for slot, stack in ipairs(inv:get_list(list)) do
		local n = stack:is_empty() and 0
			or def.allow_metadata_inventory_take(position, list, slot, stack, M.player)
		if n > 0 then
			inv:set_stack(list, slot, "")
			local got = stack:peek_item(n)
			item, amount = M.item[got:get_name()], amount + M.gain(got)
			if def.on_metadata_inventory_take then
				def.on_metadata_inventory_take(position, list, slot, got, M.player)
			end
		end
	end
	return item, amount
end

function M.take_smelted()
	if not M.go_to(body.furnace_cell, 5) then return end
	M.ticks(M.PLACE_TICKS)
	M.pass_time()
	local item, amount = empty("dst")
	if item then M.event(M.TOOK, item, amount) end
end

function M.tend_furnace()
	if not M.go_to(body.furnace_cell, 5) then return end
	M.pass_time()
	local waited, limit = 0, M.TEND_TICKS * M.TICK
	while waited < limit do
		local s = M.furnace_state()
		if s.input_count == 0 or (s.burn == 0 and s.fuel_count == 0) then break end
		M.spend(M.SECOND)
		waited = waited + M.SECOND
		M.pass_time()
	end
	if waited == 0 then
		waited = M.SECOND
		M.spend(waited)
	end
	M.event(M.WAITED, 0, waited / M.TICK)
end

-- The furnace goes with all that is in it; the engine lets nobody dig a full one.
function M.pick_up_furnace()
	local target = body.furnace_cell
	if not M.go_to(target, 5) then return end
	M.pass_time()
	for _, list in ipairs({ "src", "fuel", "dst" }) do empty(list) end
	clear_leaves(target)
	M.dig(target, true)
end

function M.pick_up_table()
	local target = body.table_cell
	if not M.go_to(target, 4) then return end
	clear_leaves(target)
	M.dig(target, true)
end

-- ---- time --------------------------------------------------------------------------------------

-- Let the node timers run up to the present: those of furnaces, wherever they stand. The engine's
-- own clock never does.
function M.pass_time()
	local passed = (body.clock - body.fed) / M.SECOND
	body.fed = body.clock
	if passed <= 0 then return end
	for _, position in ipairs(M.furnaces()) do
		local timer = minetest.get_node_timer(position)
		local left = passed
		while timer:is_started() do
			local timeout, elapsed = timer:get_timeout(), timer:get_elapsed()
			if elapsed + left < timeout then
				timer:set(timeout, elapsed + left)
				break
			end
			left = left - (timeout - elapsed)
			timer:stop()
			local def = minetest.registered_nodes[minetest.get_node(position).name]
			if def.on_timer(position, timeout) then timer:start(timeout) end
		end
	end
end

-- Nodes with an inventory: at most a few.
function M.furnaces()
	if body.placed[M.FURNACE] == 0 then return {} end
	return minetest.find_nodes_in_area(M.low, M.high, { "default:furnace", "default:furnace_active" })
end
