-- Which actions are legal now, as bits: what the engine would let the body do.
local M = ...
local K = M.K

local function bits(list)
	local word = 0
	for action, legal in pairs(list) do
		if legal then word = word + 2 ^ action end
	end
	return word
end

local function logger(view)
	local legal = { [0] = true, [1] = view.target[0] >= 0 }
	for direction = 0, 3 do legal[2 + direction] = view.steps[direction] > 0 end
	if view.depth >= 2 then
		local above = M.body.cell + 2
		if K[above] <= M.WATER then
			legal[6] = M.filler_count() > 0
		elseif M.can_dig(above) then
			local block = K[above]
			local drops = block == M.GRASS or block == M.DIRT or block == M.SAND
				or block == M.STONE or block == M.COBBLE
			legal[6] = drops or M.filler_count() > 0
		end
	end
	return bits(legal)
end

-- Whether a passage can be begun: something to dig, nothing that cannot be.
local function can_tunnel(direction)
	local ahead = M.body.cell + M.STEP[direction]
	local something = false
	for cell = ahead, ahead + 1 do
		local block = K[cell]
		if block == M.WATER or block >= M.TABLE then return false end
		if block > M.WATER then
			if not M.can_dig(cell) then return false end
			something = true
		end
	end
	return something
end

local function can_mine(cell) return cell >= 0 and M.pickaxe_level() > 0 and M.can_dig(cell) end

local function miner(view)
	local below = M.body.cell - 1
	local legal = { [0] = true, [1] = can_mine(view.target[1]), [2] = can_mine(view.target[2]),
		[3] = can_mine(view.target[3]) }
	legal[4] = K[below] < M.TABLE and M.can_dig(below)
	for direction = 0, 3 do legal[5 + direction] = can_tunnel(direction) end
	return bits(legal)
end

local function smith(view)
	local count = M.inventory().count
	local room = false
	for direction = 0, 3 do
		local cell = M.body.cell + M.STEP[direction]
		local block = K[cell]
		if block <= M.WATER or (block < M.TABLE and M.can_dig(cell)) then room = true end
	end
	local bench, fire = view.table_near ~= M.NEAR_NONE, view.furnace_near ~= M.NEAR_NONE
	local legal = { [0] = true }
	legal[2] = M.can_craft(M.I_PLANKS)
	legal[3] = M.can_craft(M.I_STICK)
	legal[4] = M.can_craft(M.I_TABLE)
	legal[5] = room and count[M.I_TABLE] > 0
	legal[6] = bench
	legal[7] = bench and M.can_craft(M.I_WOODEN_PICK)
	legal[8] = bench and M.can_craft(M.I_STONE_PICK)
	legal[9] = bench and M.can_craft(M.I_IRON_PICK)
	legal[10] = bench and M.can_craft(M.I_FURNACE)
	legal[11] = room and count[M.I_FURNACE] > 0
	if fire then
		local s = M.furnace_state()
		legal[1] = s.input_count > 0 and (s.burn > 0 or s.fuel_count > 0)
		legal[12] = M.can_dig(M.body.furnace_cell)
		legal[13] = M.can_smelt(M.I_IRON_ORE)
		legal[14] = M.can_smelt(M.I_COBBLE)
		legal[15] = M.can_smelt(M.I_LOG)
		legal[16] = s.output_count > 0
	end
	legal[17] = M.can_craft(M.I_TORCH)
	legal[18] = M.can_craft(M.I_BRICKS)
	return bits(legal)
end

function M.masks()
	local view = M.view
	return logger(view), miner(view), smith(view)
end
