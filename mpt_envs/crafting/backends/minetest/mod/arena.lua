-- The arena: the part of the engine's map that is the world of an episode, always at one place.
--
-- `K` holds the block of every cell; every change that the engine makes through Lua passes here, so
-- it follows the map. state.lua compares both whenever a snapshot is taken.
local M = ...
local W, H, CELLS = M.WIDTH, M.HEIGHT, M.CELLS
local SOUTH, EAST = M.SOUTH, M.EAST

-- Inside of one chunk high up, where the generator leaves air.
local X0, Y0, Z1 = 0, 8000, W - 1
M.low = { x = X0, y = Y0, z = 0 }
M.high = { x = X0 + W - 1, y = Y0 + H - 1, z = Z1 }

local K = {}
for cell = 0, CELLS - 1 do K[cell] = M.BARRIER end
M.K = K
M.ground = {} -- column (x * W + z) -> height of the natural ground
M.changed = {} -- cells that changed since the client was last told, in order
M.touched = true -- whether what is perceived may have changed

local floor = math.floor

function M.cell(x, y, z) return (x * W + z) * H + y end
function M.x_of(cell) return floor(cell / EAST) end
function M.z_of(cell) return floor(cell / H) % W end
function M.y_of(cell) return cell % H end
function M.column_of(cell) return floor(cell / H) end

function M.pos(cell)
	return { x = X0 + floor(cell / EAST), y = Y0 + cell % H, z = Z1 - floor(cell / H) % W }
end

function M.cell_at(p)
	local x, y, z = p.x - X0, p.y - Y0, Z1 - p.z
	if x < 0 or x >= W or y < 0 or y >= H or z < 0 or z >= W then return nil end
	return (x * W + z) * H + y
end

-- Lists of what can be looked for, each a pure function of the blocks: of each trunk the lowest log
-- that shows (roots lie in the ground), ores beside something open, stone that is the top of the
-- ground.
local lists, places = {}, {}
M.lists = lists -- kind (0 log, 1 stone, 2 coal, 3 iron) -> array of cells
local AROUND = { 1, -1, SOUTH, -SOUTH, EAST, -EAST }

local function shows(cell)
	for i = 1, 6 do
		local beside = K[cell + AROUND[i]]
		if beside and beside <= M.LEAVES then return true end
	end
	return false
end

local function kind_of(cell)
	local block = K[cell]
	if block == M.LOG then
		if shows(cell) and not (K[cell - 1] == M.LOG and shows(cell - 1)) then return 0 end
	elseif block == M.STONE then
		if K[cell + 1] <= M.WATER and M.ground[floor(cell / H)] == cell % H then return 1 end
	elseif block == M.COAL_ORE or block == M.IRON_ORE then
		for i = 1, 6 do
			local beside = K[cell + AROUND[i]]
			if beside and beside <= M.WATER then return block == M.COAL_ORE and 2 or 3 end
		end
	end
	return nil
end

local listed = {} -- cell -> kind
local function list(cell)
	local kind, old = kind_of(cell), listed[cell]
	if kind == old then return end
	if old then
		local cells, at = lists[old], places[cell]
		local last = cells[#cells]
		cells[at] = last
		places[last] = at
		cells[#cells] = nil
		places[cell] = nil
	end
	listed[cell] = kind
	if kind then
		local cells = lists[kind]
		cells[#cells + 1] = cell
		places[cell] = #cells
	end
end

-- Read all lists anew; `K` and `ground` are set.
function M.list_all()
	for kind = 0, 3 do lists[kind] = {} end
	for cell in pairs(listed) do
		listed[cell] = nil
		places[cell] = nil
	end
	for cell = 0, CELLS - 1 do
		local block = K[cell]
		if block >= M.STONE and block <= M.LOG then list(cell) end
	end
	M.touched = true
end

local function set_block(cell, block)
	if K[cell] == block then return end
	K[cell] = block
	M.changed[#M.changed + 1] = cell
	M.touched = true
	list(cell)
	for i = 1, 6 do
		local beside = cell + AROUND[i]
		if beside >= 0 and beside < CELLS then list(beside) end
		-- The lowest log that shows depends on the one below.
		if K[beside + 1] == M.LOG then list(beside + 1) end
	end
end

local function follow(p, name)
	local cell = M.cell_at(vector.round(p))
	if cell then set_block(cell, M.block[name] or M.BARRIER) end
end

for _, name in ipairs({ "set_node", "add_node", "swap_node" }) do
	local original = minetest[name]
	minetest[name] = function(p, node, ...)
		local result = original(p, node, ...)
		follow(p, node.name)
		return result
	end
end
local remove_node = minetest.remove_node
function minetest.remove_node(p, ...)
	local result = remove_node(p, ...)
	follow(p, "air")
	return result
end
local bulk_set_node = minetest.bulk_set_node
function minetest.bulk_set_node(positions, node, ...)
	local result = bulk_set_node(positions, node, ...)
	for _, p in ipairs(positions) do follow(p, node.name) end
	return result
end

function M.name_at(cell) return minetest.get_node(M.pos(cell)).name end
