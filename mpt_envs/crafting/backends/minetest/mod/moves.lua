-- How the body moves: steps that a body two nodes tall can take, ways, falls.
local M = ...
local K = M.K
local AIR, WATER = M.AIR, M.WATER

local function setting(name, default) return tonumber(minetest.settings:get(name)) or default end
local GRAVITY = setting("movement_gravity", 9.81)
local floor, sqrt = math.floor, math.sqrt
local WALK = floor(M.SECOND / setting("movement_speed_walk", 4) + 0.5)
local SWIM = 2 * WALK
-- A jump reaches one node up after this long.
local JUMP_SPEED = setting("movement_speed_jump", 6.5)
local JUMP = floor(M.SECOND * (JUMP_SPEED - sqrt(JUMP_SPEED ^ 2 - 2 * GRAVITY)) / GRAVITY + 0.5)
-- Who lands slower than this (nodes a second) is not hurt; each node a second more is a point.
local SAFE_SPEED = 14

local function fall_time(nodes) return floor(M.SECOND * sqrt(2 * nodes / GRAVITY) + 0.5) end

-- The cell to which one step leads, or nil: level, up one, down at most SAFE_DROP; the head stays
-- out of water.
function M.walk_step(feet, direction)
	local ahead = feet + M.STEP[direction]
	if K[ahead] <= WATER then
		if K[ahead + 1] ~= AIR then
			if K[ahead + 1] == WATER and K[ahead + 2] == AIR and K[feet + 2] == AIR then
				return ahead + 1
			end
			return nil
		end
		if K[ahead] == WATER then return ahead end
		for _ = 0, M.SAFE_DROP do
			if K[ahead - 1] >= M.LEAVES or K[ahead] == WATER then return ahead end
			ahead = ahead - 1
		end
		return nil
	end
	if K[ahead] < M.BEDROCK and K[ahead + 1] <= WATER and K[ahead + 2] == AIR
		and K[feet + 2] == AIR then
		return ahead + 1
	end
	return nil
end
local walk_step = M.walk_step

-- Milliticks of one step.
function M.step_cost(before, after, direction)
	local cost = K[after] == WATER and SWIM or WALK
	local rise = after - before - M.STEP[direction]
	if rise > 0 then return cost + JUMP end
	if rise < 0 then return cost + fall_time(-rise) end
	return cost
end
local step_cost = M.step_cost

-- Gravity. The engine hurts who lands too fast.
function M.settle()
	local feet, fallen = M.body.cell, 0
	while K[feet - 1] <= WATER and K[feet] ~= WATER do
		feet = feet - 1
		fallen = fallen + 1
	end
	if fallen == 0 then return end
	M.stand(feet)
	M.spend(fall_time(fallen))
	if fallen > 1 then M.event(M.FELL, 0, fallen) end
	if K[feet] == WATER then return end
	local percent = minetest.get_item_group(M.name_at(feet - 1), "fall_damage_add_percent")
	local speed = sqrt(2 * GRAVITY * fallen) * (1 + percent / 100)
	local hurt = floor(speed - SAFE_SPEED + 0.5)
	if hurt > 0 then
		M.body.hp = math.max(0, M.body.hp - hurt)
		M.event(M.HURT, 0, hurt)
	end
end

-- ---- ways --------------------------------------------------------------------------------------

local function go_straight(target)
	local feet, cost = M.body.cell, 0
	local x, z = M.x_of(target), M.z_of(target)
	for _ = 1, 20 do
		local dx, dz = x - M.x_of(feet), z - M.z_of(feet)
		if dx == 0 and dz == 0 then return false end
		local along_x, along_z = dx > 0 and 1 or 3, dz > 0 and 2 or 0
		local first, second = along_x, along_z
		if math.abs(dz) > math.abs(dx) then first, second = along_z, along_x end
		local direction, after = first, walk_step(feet, first)
		if not after and dx ~= 0 and dz ~= 0 then
			direction = second
			after = walk_step(feet, second)
		end
		if not after then return false end
		cost = cost + step_cost(feet, after, direction)
		feet = after
		if M.at_work(feet, target) then
			M.stand(feet)
			M.spend(cost)
			return true
		end
	end
	return false
end

local function direction_between(from, to)
	local dx, dz = M.x_of(to) - M.x_of(from), M.z_of(to) - M.z_of(from)
	if math.abs(dx) + math.abs(dz) ~= 1 then return nil end
	if dx ~= 0 then return dx > 0 and 1 or 3 end
	return dz > 0 and 2 or 0
end

-- The cost of a path of the engine for this body, or nil: the engine's own finder takes a body of
-- one node.
local function cost_of(path)
	local cost, before = 0, nil
	for _, p in ipairs(path) do
		local cell = M.cell_at(p)
		if not cell then return nil end
		if before then
			local direction = direction_between(before, cell)
			if not direction or walk_step(before, direction) ~= cell then return nil end
			cost = cost + step_cost(before, cell, direction)
		end
		before = cell
	end
	return cost
end

local RADIUS, TRIED, SEARCHED = 12, 3, 320

-- Cells from which a block can be worked on, nearest to the body first.
local function standing_places(target)
	local feet, found = M.body.cell, {}
	local x, y, z = M.x_of(target), M.y_of(target), M.z_of(target)
	local bx, by, bz = M.x_of(feet), M.y_of(feet), M.z_of(feet)
	for cx = math.max(1, x - 4), math.min(M.WIDTH - 2, x + 4) do
		for cz = math.max(1, z - 4), math.min(M.WIDTH - 2, z + 4) do
			local away = math.abs(cx - bx) + math.abs(cz - bz)
			if math.abs(cx - bx) <= RADIUS and math.abs(cz - bz) <= RADIUS then
				for cy = math.max(1, y - 5), math.min(M.HEIGHT - 3, y + 3) do
					local cell = M.cell(cx, cy, cz)
					if K[cell] <= WATER and K[cell + 1] == AIR
						and (K[cell - 1] >= M.LEAVES or K[cell] == WATER)
						and M.eye_distance_squared(cell, target) <= M.REACH * M.REACH then
						found[#found + 1] = { away + math.abs(cy - by), cell }
					end
				end
			end
		end
	end
	table.sort(found, function(a, b)
		if a[1] ~= b[1] then return a[1] < b[1] end
		return a[2] < b[2]
	end)
	return found
end

local function go_by_engine(target)
	local from, tried = M.pos(M.body.cell), 0
	for _, entry in ipairs(standing_places(target)) do
		local cell = entry[2]
		if M.sees(cell, target) then
			local path = minetest.find_path(from, M.pos(cell), 6, 1, M.SAFE_DROP, "A*")
			local cost = path and cost_of(path)
			if cost then
				M.stand(cell)
				M.spend(cost)
				return true
			end
			tried = tried + 1
			if tried == TRIED then return false end
		end
	end
	return false
end

-- Breadth first over the steps of this body: what the engine's finder cannot do is to swim, and to
-- leave out where there is no room for the head.
local function go_by_search(target)
	local start = M.body.cell
	local x0, z0 = M.x_of(start), M.z_of(start)
	local queue, costs, visited = { start }, { 0 }, { [start] = true }
	local head = 1
	while head <= #queue do
		local feet = queue[head]
		for direction = 0, 3 do
			local after = walk_step(feet, direction)
			if after and not visited[after] and #queue < SEARCHED
				and math.abs(M.x_of(after) - x0) <= RADIUS
				and math.abs(M.z_of(after) - z0) <= RADIUS then
				visited[after] = true
				local cost = costs[head] + step_cost(feet, after, direction)
				if M.at_work(after, target) then
					M.stand(after)
					M.spend(cost)
					return true
				end
				queue[#queue + 1] = after
				costs[#costs + 1] = cost
			end
		end
		head = head + 1
	end
	return false
end

-- Walk until a block can be worked on; whether it can. `kind`: of the target, for the event.
function M.go_to(target, kind)
	if M.at_work(M.body.cell, target) or go_straight(target) or go_by_engine(target)
		or go_by_search(target) then
		return true
	end
	M.give_up(target, kind)
	return false
end

-- Walk about eight nodes in a direction, around obstacles one node wide.
function M.explore(direction)
	local feet, steps, cost = M.body.cell, 0, 0
	while steps < M.EXPLORE_STEPS do
		local way, after = direction, walk_step(feet, direction)
		if not after then
			for turn = 1, 3, 2 do
				local side = (direction + turn) % 4
				local beside = walk_step(feet, side)
				if beside and walk_step(beside, direction) then
					way, after = side, beside
					break
				end
			end
		end
		if not after then break end
		cost = cost + step_cost(feet, after, way)
		feet = after
		steps = steps + 1
	end
	M.stand(feet)
	M.spend(cost)
	M.body.heading = direction
	M.event(M.WALKED, direction, steps)
end
