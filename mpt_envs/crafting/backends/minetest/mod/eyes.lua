-- What the body sees: the engine's rays decide.
local M = ...
local K = M.K
local SIGHT, CANDIDATES = M.SIGHT, 4
local EYES = 1.625 -- above the soles, as the engine's player
M.REACH = 4.5 -- the hand's range of 4 to a block's face, to its centre

local function square(feet, target)
	local dx = M.x_of(target) - M.x_of(feet)
	local dy = M.y_of(target) - M.y_of(feet) + 0.5 - EYES
	local dz = M.z_of(target) - M.z_of(feet)
	return dx * dx + dy * dy + dz * dz
end
M.eye_distance_squared = square

local function eyes_of(feet)
	local p = M.pos(feet)
	p.y = p.y - 0.5 + EYES
	return vector.new(p.x, p.y, p.z)
end

-- The first thing on a line that cannot be seen through. Leaves, water and plants can.
local function first_opaque(from, to)
	for thing in minetest.raycast(from, to, false, false) do
		local cell = M.cell_at(thing.under)
		if not cell or K[cell] > M.LEAVES then return cell end
	end
	return nil
end

local function aims(from, target)
	local p = M.pos(target)
	local side = 0.49
	return {
		vector.new(p.x, p.y, p.z),
		vector.new(p.x + (from.x > p.x and side or -side), p.y, p.z),
		vector.new(p.x, p.y + (from.y > p.y and side or -side), p.z),
		vector.new(p.x, p.y, p.z + (from.z > p.z and side or -side)),
	}
end

-- Whether a faces outwards into something that can be seen through.
local function is_open(cell) return K[cell] <= M.LEAVES end

-- The point of a block at which the body can look from a cell, or nil.
function M.aim(feet, target)
	local from = eyes_of(feet)
	local points = aims(from, target)
	local p = points[1]
	local beside = {
		target + (from.x > p.x and M.EAST or -M.EAST),
		target + (from.y > p.y and 1 or -1),
		target + (from.z > p.z and -M.SOUTH or M.SOUTH),
	}
	local shown = is_open(beside[1]) or is_open(beside[2]) or is_open(beside[3])
	if not shown then return nil end
	if first_opaque(from, p) == target then return p, from end
	for i = 1, 3 do
		if is_open(beside[i]) and first_opaque(from, points[i + 1]) == target then
			return points[i + 1], from
		end
	end
	return nil
end

function M.sees(feet, target) return M.aim(feet, target) ~= nil end

function M.at_work(feet, target)
	return square(feet, target) <= M.REACH * M.REACH and M.sees(feet, target)
end

-- Cells of leaves between the eyes and a block in sight, nearest first.
function M.leaves_before(feet, target)
	local point, from = M.aim(feet, target)
	local found = {}
	if not point then return found end
	for thing in minetest.raycast(from, point, false, false) do
		local cell = M.cell_at(thing.under)
		if not cell or cell == target then break end
		if K[cell] == M.LEAVES then found[#found + 1] = cell end
	end
	return found
end

-- ---- targets ---------------------------------------------------------------------------------

local view = {}
M.view = view
for _, name in ipairs({ "target", "distance", "steps", "rise", "water", "feet", "head" }) do
	view[name] = { [0] = 0, 0, 0, 0 }
end

local NEAR = {} -- offsets from the feet where stone is looked for, nearest to the eyes first
for dx = -2, 2 do
	for dz = -2, 2 do
		for dy = -1, 3 do
			if dx ~= 0 or dz ~= 0 or dy >= 2 then
				NEAR[#NEAR + 1] = { dx, dy, dz, dx * dx + dz * dz + (dy + 0.5 - EYES) ^ 2 }
			end
		end
	end
end
table.sort(NEAR, function(a, b)
	if a[4] ~= b[4] then return a[4] < b[4] end
	for i = 1, 3 do
		if a[i] ~= b[i] then return a[i] < b[i] end
	end
	return false
end)

local function found(kind, cell)
	view.target[kind] = cell
	view.distance[kind] = math.floor(10 * math.sqrt(square(M.body.cell, cell)))
	return true
end

-- Of a list, the nearest that is in sight; those given up are left out and flagged.
local function look(kind)
	local feet = M.body.cell
	local near = {}
	for _, cell in ipairs(M.lists[kind]) do
		local d = square(feet, cell)
		if d <= SIGHT * SIGHT and cell ~= feet - 1 then near[#near + 1] = { d, cell } end
	end
	table.sort(near, function(a, b)
		if a[1] ~= b[1] then return a[1] < b[1] end
		return a[2] < b[2]
	end)
	local looks = 0
	for _, entry in ipairs(near) do
		if M.is_marked(entry[2]) then
			view.given_up[kind] = true
		elseif M.sees(feet, entry[2]) then
			return found(kind, entry[2])
		else
			looks = looks + 1
			if looks == CANDIDATES then break end
		end
	end
	view.target[kind] = -1
	view.distance[kind] = 0
	return false
end

local function look_for_stone()
	local feet = M.body.cell
	local x, y, z = M.x_of(feet), M.y_of(feet), M.z_of(feet)
	local looks = 0
	for _, o in ipairs(NEAR) do
		local cx, cy, cz = x + o[1], y + o[2], z + o[3]
		if cx >= 1 and cx <= M.WIDTH - 2 and cz >= 1 and cz <= M.WIDTH - 2 and cy >= 1
			and cy <= M.HEIGHT - 2 then
			local cell = M.cell(cx, cy, cz)
			if K[cell] == M.STONE or K[cell] == M.COBBLE then
				if M.is_marked(cell) then
					view.given_up[1] = true
				elseif M.sees(feet, cell) then
					return found(1, cell)
				else
					looks = looks + 1
					if looks == CANDIDATES then break end
				end
			end
		end
	end
	return look(1)
end

local function station(cell)
	if cell < 0 or M.is_marked(cell) then return M.NEAR_NONE end
	local feet = M.body.cell
	local d = square(feet, cell)
	if d > SIGHT * SIGHT or not M.sees(feet, cell) then return M.NEAR_NONE end
	return d <= M.REACH * M.REACH and M.NEAR_REACH or M.NEAR_WALK
end

-- Write everything that the body perceives into `view`.
function M.perceive()
	local feet = M.body.cell
	view.given_up = {}
	look(0)
	look_for_stone()
	look(2)
	look(3)
	for direction = 0, 3 do
		local beside = feet + M.STEP[direction]
		view.feet[direction] = K[beside]
		view.head[direction] = K[beside + 1]
		local cell, steps, water = feet, 0, 0
		while steps < M.EXPLORE_STEPS do
			local after = M.walk_step(cell, direction)
			if not after then break end
			cell = after
			steps = steps + 1
			if K[cell] == M.WATER then water = 1 end
		end
		view.steps[direction] = steps
		view.rise[direction] = cell - feet - steps * M.STEP[direction]
		view.water[direction] = water
	end
	local y = M.y_of(feet)
	view.below = K[feet - 1]
	view.above = y < M.HEIGHT - 2 and K[feet + 2] or M.BARRIER
	view.depth = M.ground[M.column_of(feet)] + 1 - y
	view.covered = 0
	for up = 2, M.HEIGHT - 2 - y do
		if K[feet + up] >= M.GRASS then
			view.covered = 1
			break
		end
	end
	view.table_near = station(M.body.table_cell)
	view.furnace_near = station(M.body.furnace_cell)
	M.touched = false
end
