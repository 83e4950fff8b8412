-- The world of an episode: a piece of the engine's own landscape, copied to the arena.
--
-- The client names chunks to try, in order (a function of seed and episode). They lie so far apart
-- that no two are neighbours, so each is generated alone and is the same whatever came before. The
-- first that has what the tasks need is taken; what was generated is forgotten again.
local M = ...
local K = M.K
local W, H = M.WIDTH, M.HEIGHT

local CHUNK, LOW = 80, -32
-- Where in a chunk to cut: off its edges, whose trees may belong to the next one.
local WINDOWS = { { 16, 16 }, { 4, 4 }, { 28, 28 }, { 4, 28 }, { 28, 4 } }
local GROUND_LAYER = 13 -- where the middle height of the ground lies in the arena
local MIN_TREES, MIN_ORE = 10, 40 -- as in the embedded world
local MIN_CAVE = 600 -- open nodes under the ground; the embedded world always has about 1,300
local TREE_NEAR, START_NEAR = 9, 14
local MIN_ROOM = 250 -- cells that can be walked to from the start

local function is_forest(x, y, z)
	local data = minetest.get_biome_data({ x = x, y = y, z = z })
	local name = data and minetest.get_biome_name(data.biome) or ""
	return name == "deciduous_forest" or name == "coniferous_forest" or name == "rainforest"
end

-- Load a region; to be called in a coroutine that `M.resume` continues.
local function emerge(low, high)
	minetest.emerge_area(low, high, function(_, _, left)
		if left == 0 then M.resume() end
	end)
	coroutine.yield()
end

local prepared = false
local function prepare()
	if not prepared then
		emerge(M.low, M.high)
		prepared = true
	end
end
M.prepare = prepare

local function is_natural(block) return block >= M.GRASS and block <= M.IRON_ORE end

local data = {}

-- Cut the world out of a chunk; nil if it does not serve. Returns content ids by cell, and a function
-- that returns param2 by cell.
local function cut_out(x0, z0)
	local low = { x = x0, y = LOW, z = z0 }
	local high = { x = x0 + W - 1, y = LOW + CHUNK - 1, z = z0 + W - 1 }
	local manip = minetest.get_voxel_manip()
	local e1, e2 = manip:read_from_map(low, high)
	manip:get_data(data)
	local area = VoxelArea:new({ MinEdge = e1, MaxEdge = e2 })
	local row = area.ystride
	local block_by_id = M.block_by_id
	local top, sorted = {}, {}
	for x = 0, W - 1 do
		for z = 0, W - 1 do
			local at = area:index(x0 + x, high.y, z0 + W - 1 - z)
			local y = high.y
			while y > LOW and not is_natural(block_by_id[data[at]] or M.BARRIER) do
				y = y - 1
				at = at - row
			end
			top[x * W + z] = y
			sorted[#sorted + 1] = y
		end
	end
	table.sort(sorted)
	local base = sorted[math.floor(#sorted / 2)] - GROUND_LAYER
	if base < LOW or base + H > LOW + CHUNK then return nil end
	local ids, places = {}, {}
	local barrier = minetest.get_content_id("mpt_body:barrier")
	local bedrock = minetest.get_content_id("mpt_body:bedrock")
	local cell = 0
	for x = 0, W - 1 do
		for z = 0, W - 1 do
			local at = area:index(x0 + x, base, z0 + W - 1 - z)
			local edge = x == 0 or z == 0 or x == W - 1 or z == W - 1
			for y = 0, H - 1 do
				if edge or y == H - 1 then
					ids[cell], places[cell] = barrier, false
				elseif y == 0 then
					ids[cell], places[cell] = bedrock, false
				else
					local id = data[at]
					local block = block_by_id[id]
					-- Lava would be a wall to this body: no such place.
					if not block or block >= M.TABLE then return nil end
					ids[cell], places[cell] = id, at
				end
				at = at + row
				cell = cell + 1
			end
			M.ground[x * W + z] = math.min(math.max(top[x * W + z] - base, 0), H - 2)
		end
	end
	return ids, function()
		local param2, params = manip:get_param2_data(), {}
		for i = 0, M.CELLS - 1 do params[i] = places[i] and param2[places[i]] or 0 end
		return params
	end
end

-- Whether a body could leave a cell: roots and pits close some in.
local function has_room(start)
	local queue, visited, head = { start }, { [start] = true }, 1
	while head <= #queue and #queue < MIN_ROOM do
		for direction = 0, 3 do
			local after = M.walk_step(queue[head], direction)
			if after and not visited[after] then
				visited[after] = true
				queue[#queue + 1] = after
			end
		end
		head = head + 1
	end
	return #queue >= MIN_ROOM
end

-- Dry open ground near the middle with a tree in sight, or nil.
local function find_start()
	local middle, places = (W - 1) / 2, {}
	for x = 1, W - 2 do
		for z = 1, W - 2 do
			local away = math.max(math.abs(x - middle), math.abs(z - middle))
			local cell = M.cell(x, M.ground[x * W + z] + 1, z)
			if away <= START_NEAR and M.ground[x * W + z] < H - 4 and K[cell] == M.AIR
				and K[cell + 1] == M.AIR then
				places[#places + 1] = { (x - middle) ^ 2 + (z - middle) ^ 2, cell }
			end
		end
	end
	table.sort(places, function(a, b)
		if a[1] ~= b[1] then return a[1] < b[1] end
		return a[2] < b[2]
	end)
	for _, place in ipairs(places) do
		local cell = place[2]
		for _, tree in ipairs(M.lists[0]) do
			if M.eye_distance_squared(cell, tree) <= TREE_NEAR * TREE_NEAR and M.sees(cell, tree) then
				if has_room(cell) then return cell end
				break
			end
		end
	end
	return nil
end

-- Whether there is enough of everything: ore and caves by content id, before anything is written.
local function serves(ids)
	local coal, iron, cave = 0, 0, 0
	local block_by_id = M.block_by_id
	for column = 0, W * W - 1 do
		local ground = M.ground[column]
		for y = 1, H - 2 do
			local block = block_by_id[ids[column * H + y]]
			if block == M.COAL_ORE then
				coal = coal + 1
			elseif block == M.IRON_ORE then
				iron = iron + 1
			elseif block == M.AIR and y < ground then
				cave = cave + 1
			end
		end
	end
	return coal >= MIN_ORE and iron >= MIN_ORE and cave >= MIN_CAVE
end

-- Start an episode in the first of some chunks, pairs of numbers, that serves. Returns how many
-- were looked at.
function M.begin(chunks)
	prepare()
	for i = 1, #chunks, 2 do
		local cx, cz = CHUNK * chunks[i] + LOW, CHUNK * chunks[i + 1] + LOW
		local mx, mz = cx + CHUNK / 2, cz + CHUNK / 2
		local level = minetest.get_spawn_level(mx, mz)
		if level and level < 34 and is_forest(mx, level, mz) then
			local start = nil
			local high = LOW + CHUNK
			emerge({ x = cx, y = LOW, z = cz },
				{ x = cx + CHUNK - 1, y = high - 1, z = cz + CHUNK - 1 })
			for _, window in ipairs(WINDOWS) do
				local ids, params = cut_out(cx + window[1], cz + window[2])
				if ids and serves(ids) then
					M.write_map(ids, params(), {})
					start = #M.lists[0] >= MIN_TREES and find_start()
					if start then break end
				end
			end
			minetest.delete_area({ x = cx - 16, y = LOW - 16, z = cz - 16 },
				{ x = cx + CHUNK + 15, y = high + 15, z = cz + CHUNK + 15 })
			if start then
				M.new_body(start)
				M.events, M.changed, M.outcome = {}, {}, 0
				M.perceive()
				return (i + 1) / 2
			end
		end
	end
	error("none of the " .. #chunks / 2 .. " places drawn for this episode serves")
end
