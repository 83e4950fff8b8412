-- Codes and sizes that the client shares: blocks, items, events, targets (facts.py, layout.py).
local M = ...

M.WIDTH, M.HEIGHT = 48, 24
M.CELLS = M.WIDTH * M.WIDTH * M.HEIGHT
M.UP, M.SOUTH, M.EAST = 1, M.HEIGHT, M.WIDTH * M.HEIGHT
-- north, east, south, west; the engine's north is +z, the record's is -z
M.STEP = { [0] = -M.SOUTH, M.EAST, M.SOUTH, -M.EAST }

M.AIR, M.WATER, M.LEAVES, M.GRASS, M.DIRT, M.SAND, M.GRAVEL, M.STONE = 0, 1, 2, 3, 4, 5, 6, 7
M.COAL_ORE, M.IRON_ORE, M.LOG, M.COBBLE, M.TABLE, M.FURNACE = 8, 9, 10, 11, 12, 13
M.BEDROCK, M.BARRIER = 14, 15

M.I_LOG, M.I_PLANKS, M.I_STICK, M.I_COBBLE, M.I_STONE, M.I_DIRT, M.I_SAND = 0, 1, 2, 3, 4, 5, 6
M.I_GRAVEL, M.I_FLINT, M.I_COAL, M.I_CHARCOAL, M.I_IRON_ORE, M.I_INGOT = 7, 8, 9, 10, 11, 12
M.I_TABLE, M.I_FURNACE, M.I_TORCH, M.I_BRICKS = 13, 14, 15, 16
M.I_WOODEN_PICK, M.I_STONE_PICK, M.I_IRON_PICK = 17, 18, 19
M.N_ITEMS = 20

M.GOT, M.BROKE, M.CRAFTED, M.PLACED, M.SMELTING, M.TOOK = 1, 2, 3, 4, 5, 6
M.WALKED, M.TUNNELLED, M.CLIMBED, M.FELL, M.BLOCKED = 7, 8, 9, 10, 11
M.TOOL_BROKE, M.WAITED, M.SKIPPED, M.HURT = 12, 13, 14, 16

M.NEAR_NONE, M.NEAR_WALK, M.NEAR_REACH = 0, 1, 2
M.LOGGER, M.MINER, M.SMITH = 0, 1, 2

-- Time is counted in milliticks, whole numbers: a tick is a twentieth of a second.
M.TICK = 1000
M.SECOND = 20 * M.TICK
-- What the engine leaves to the player's hands, as in facts.py.
M.WAIT_TICKS, M.SKIP_TICKS, M.BLOCKED_TICKS, M.CRAFT_TICKS, M.PLACE_TICKS = 20, 20, 20, 10, 8
M.PILLAR_TICKS, M.TEND_TICKS, M.BREAK_DELAY_TICKS = 12, 200, 6
M.EXPLORE_STEPS, M.TUNNEL_LENGTH, M.CLIMB_LEVELS, M.SMELT_BATCH = 8, 2, 8, 4
M.SIGHT, M.GIVE_UP_TICKS, M.SAFE_DROP = 10, 400, 3
