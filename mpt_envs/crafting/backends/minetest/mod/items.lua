-- Which of the game's nodes and items stand for which block and item of the tasks.
local M = ...

-- The game crafts 3x3 by hand; a workbench keeps the table's place in the tech tree.
minetest.register_node(":mpt_body:workbench", {
	description = "Workbench",
	tiles = { "default_wood.png" },
	groups = { choppy = 2, oddly_breakable_by_hand = 2 },
})
minetest.register_craft({
	output = "mpt_body:workbench",
	recipe = { { "group:wood", "group:wood" }, { "group:wood", "group:wood" } },
})
-- The border of the world and its floor.
for _, name in ipairs({ "barrier", "bedrock" }) do
	minetest.register_node(":mpt_body:" .. name, {
		description = name, tiles = { "default_obsidian.png" },
		diggable = false, groups = { not_in_creative_inventory = 1 },
	})
end

local BLOCKS = {
	["default:dirt"] = M.DIRT, ["default:gravel"] = M.GRAVEL, ["default:stone"] = M.STONE,
	["default:stone_with_coal"] = M.COAL_ORE, ["default:stone_with_iron"] = M.IRON_ORE,
	["default:cobble"] = M.COBBLE, ["default:mossycobble"] = M.COBBLE,
	["mpt_body:workbench"] = M.TABLE, ["default:furnace"] = M.FURNACE,
	["default:furnace_active"] = M.FURNACE, ["mpt_body:bedrock"] = M.BEDROCK,
	["mpt_body:barrier"] = M.BARRIER,
}
local ITEMS = {
	["default:stick"] = M.I_STICK, ["default:cobble"] = M.I_COBBLE,
	["default:mossycobble"] = M.I_COBBLE, ["default:stone"] = M.I_STONE,
	["default:dirt"] = M.I_DIRT, ["default:gravel"] = M.I_GRAVEL, ["default:flint"] = M.I_FLINT,
	["default:coal_lump"] = M.I_COAL, ["default:iron_lump"] = M.I_IRON_ORE,
	["default:steel_ingot"] = M.I_INGOT, ["mpt_body:workbench"] = M.I_TABLE,
	["default:furnace"] = M.I_FURNACE, ["default:torch"] = M.I_TORCH,
	["default:stonebrick"] = M.I_BRICKS, ["default:pick_wood"] = M.I_WOODEN_PICK,
	["default:pick_stone"] = M.I_STONE_PICK, ["default:pick_steel"] = M.I_IRON_PICK,
}

local function block_of(name, def)
	if BLOCKS[name] then return BLOCKS[name] end
	local group = minetest.get_item_group
	if name == "ignore" then return M.BARRIER end
	if def.liquidtype ~= "none" then
		-- Lava is never entered.
		return group(name, "water") ~= 0 and M.WATER or M.BEDROCK
	end
	if not def.walkable then return M.AIR end
	if group(name, "tree") ~= 0 then return M.LOG end
	if group(name, "leaves") ~= 0 then return M.LEAVES end
	if group(name, "soil") ~= 0 then return M.GRASS end
	if not def.diggable then return M.BEDROCK end
	if group(name, "sand") ~= 0 or group(name, "cracky") ~= 0 then return M.SAND end
	return M.DIRT
end

local function item_of(name)
	if ITEMS[name] then return ITEMS[name] end
	local group = minetest.get_item_group
	if group(name, "tree") ~= 0 then return M.I_LOG end
	if group(name, "wood") ~= 0 then return M.I_PLANKS end
	if group(name, "sand") ~= 0 then return M.I_SAND end
	return nil
end

M.block = {} -- name -> block
M.item = {} -- name -> item
M.block_by_id = {} -- content id -> block
minetest.register_on_mods_loaded(function()
	for name, def in pairs(minetest.registered_nodes) do
		M.block[name] = block_of(name, def)
		M.block_by_id[minetest.get_content_id(name)] = M.block[name]
	end
	for name in pairs(minetest.registered_items) do M.item[name] = item_of(name) end
end)
