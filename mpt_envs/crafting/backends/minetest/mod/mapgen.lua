-- What the map generator places: ore that can be reached, and decorations that are the same in
-- every process.

-- The optional nodes of a schematic are rolled by a generator that belongs to the process, and
-- decorations are rolled in the order of a hash table: make every node certain or absent, and the
-- order that of the content.
local function canonical(value)
	if type(value) ~= "table" then return tostring(value) end
	local keys, by_key = {}, {}
	for key, entry in pairs(value) do
		key = tostring(key)
		keys[#keys + 1] = key
		by_key[key] = entry
	end
	table.sort(keys)
	for i, key in ipairs(keys) do keys[i] = key .. "=" .. canonical(by_key[key]) end
	return "{" .. table.concat(keys, ",") .. "}"
end

local function settle_schematic(source)
	local schematic = source
	if type(source) == "string" then
		schematic = minetest.read_schematic(source, { write_yslice_prob = "all" })
	end
	for _, node in ipairs(schematic.data) do
		local probability = node.prob or node.param1 or 254
		node.param1 = nil
		node.prob = probability >= 127 and 254 or 0
	end
	for _, slice in ipairs(schematic.yslice_prob or {}) do
		slice.prob = (slice.prob or 254) >= 127 and 254 or 0
	end
	return schematic
end

local keys, decorations = {}, {}
for _, decoration in pairs(minetest.registered_decorations) do
	local key = canonical(decoration)
	keys[#keys + 1] = key
	decorations[key] = decoration
end
table.sort(keys)
minetest.clear_registered_decorations()
for _, key in ipairs(keys) do
	local decoration = decorations[key]
	if decoration.deco_type == "schematic" then
		decoration.schematic = settle_schematic(decoration.schematic)
	end
	minetest.register_decoration(decoration)
end

-- The game's veins of coal and iron are large and rare, and its iron begins deep down. Here they are
-- as frequent in the upper stone, and as small, as in the embedded world: one vein of about 4 coal
-- in 216 nodes, one of about 3 iron in 166. All other ores stay as they are.
local VEINS = {
	["default:stone_with_coal"] = { 216, 4 },
	["default:stone_with_iron"] = { 166, 3 },
}
local ore_keys, ores = {}, {}
for _, ore in pairs(minetest.registered_ores) do
	if not VEINS[ore.ore] then
		local key = canonical(ore)
		ore_keys[#ore_keys + 1] = key
		ores[key] = ore
	end
end
table.sort(ore_keys)
minetest.clear_registered_ores()
for _, key in ipairs(ore_keys) do minetest.register_ore(ores[key]) end
for _, name in ipairs({ "default:stone_with_coal", "default:stone_with_iron" }) do
	minetest.register_ore({
		ore_type = "scatter", ore = name, wherein = "default:stone",
		clust_scarcity = VEINS[name][1], clust_num_ores = VEINS[name][2], clust_size = 2,
		y_min = -64, y_max = 64,
	})
end
