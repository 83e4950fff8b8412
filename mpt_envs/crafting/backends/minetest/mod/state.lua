-- The whole state as text and back: a snapshot, and the proof that it is one.
--
-- A state is three strings: the kinds of node in the arena with one byte a cell (names sorted, so
-- that equal states give equal strings), the height of the ground, and everything else as JSON with
-- sorted keys: param2 where it is not 0, metadata, node timers, the body. Light is left out:
-- nothing in the tasks reads it, and the arena is lit evenly.
local M, insecure = ...
local K = M.K
local W, H, CELLS = M.WIDTH, M.HEIGHT, M.CELLS

-- `n` bytes, f(0) to f(n - 1).
local has_ffi, ffi = pcall(insecure.require, "ffi")
local bytes
if has_ffi then
	local buffer = ffi.new("uint8_t[?]", CELLS)
	bytes = function(n, f)
		for i = 0, n - 1 do buffer[i] = f(i) end
		return ffi.string(buffer, n)
	end
else
	bytes = function(n, f)
		local parts = {}
		for i = 0, n - 1 do parts[i + 1] = string.char(f(i)) end
		return table.concat(parts)
	end
end
M.bytes = bytes

-- ---- text ----------------------------------------------------------------------------------------

local function quote(s)
	return '"' .. s:gsub('[%c"\\\127]', function(c)
		return string.format("\\u%04x", c:byte())
	end) .. '"'
end

local function text_of(value)
	local kind = type(value)
	if kind == "string" then return quote(value) end
	if kind == "number" then return string.format("%.17g", value) end
	if kind == "boolean" then return tostring(value) end
	local parts = {}
	if value[1] ~= nil or next(value) == nil then
		for i, entry in ipairs(value) do parts[i] = text_of(entry) end
		return "[" .. table.concat(parts, ",") .. "]"
	end
	local keys = {}
	for key in pairs(value) do keys[#keys + 1] = key end
	table.sort(keys)
	for i, key in ipairs(keys) do parts[i] = quote(key) .. ":" .. text_of(value[key]) end
	return "{" .. table.concat(parts, ",") .. "}"
end

local function stacks(list)
	local out = {}
	for i, stack in ipairs(list) do out[i] = stack:to_string() end
	return out
end

-- ---- reading -------------------------------------------------------------------------------------

-- The manipulator's arrays. It takes whole blocks: over the arena lie a few layers that nobody
-- changes, so that what was read of them once is what is written.
local data, params = {}, {}
local filled = false

local function open_map(wanted)
	local manip = minetest.get_voxel_manip()
	local e1, e2 = manip:read_from_map(M.low, M.high)
	if wanted or not filled then
		manip:get_data(data)
		manip:get_param2_data(params)
		filled = true
	end
	return VoxelArea:new({ MinEdge = e1, MaxEdge = e2 }), manip
end

-- Index in a manipulator's arrays of the lowest cell of a column.
local function column(area, x, z) return area:index(M.low.x + x, M.low.y, M.high.z - z) end

local function metadata()
	local out = {}
	local found = minetest.find_nodes_with_meta(M.low, M.high)
	for _, position in ipairs(found) do
		local meta = minetest.get_meta(position)
		local content = meta:to_table()
		local timer = minetest.get_node_timer(position)
		local lists = {}
		for name, list in pairs(content.inventory) do lists[name] = stacks(list) end
		out[#out + 1] = {
			cell = M.cell_at(position), fields = content.fields, lists = lists,
			timer = { timer:is_started() and 1 or 0, timer:get_timeout(), timer:get_elapsed() },
		}
	end
	table.sort(out, function(a, b) return a.cell < b.cell end)
	return out
end

-- Names of the nodes, bytes of the cells, bytes of the ground, everything else.
function M.read_state()
	local area = open_map(true)
	local row = area.ystride
	local known, names = {}, {}
	for x = 0, W - 1 do
		for z = 0, W - 1 do
			local at = column(area, x, z)
			for _ = 1, H do
				local id = data[at]
				if not known[id] then
					known[id] = true
					names[#names + 1] = minetest.get_name_from_content_id(id)
				end
				at = at + row
			end
		end
	end
	assert(#names <= 256, "more than 256 kinds of node in the arena")
	table.sort(names)
	local code = {}
	for i, name in ipairs(names) do code[minetest.get_content_id(name)] = i - 1 end
	local cells, sparse, n = {}, {}, 0
	local block_by_id = M.block_by_id
	for x = 0, W - 1 do
		for z = 0, W - 1 do
			local at = column(area, x, z)
			for _ = 1, H do
				local id = data[at]
				if block_by_id[id] ~= K[n] then error("the engine's map and its mirror differ") end
				cells[n] = code[id]
				if params[at] ~= 0 then
					sparse[#sparse + 1] = n
					sparse[#sparse + 1] = params[at]
				end
				at = at + row
				n = n + 1
			end
		end
	end
	local body, numbers = M.body, {}
	for _, name in ipairs(M.NUMBERS) do numbers[name] = body[name] end
	local dug, placed = {}, {}
	for block = 0, 15 do
		dug[block + 1] = body.dug[block]
		placed[block + 1] = body.placed[block]
	end
	local rest = text_of({
		body = numbers, dug = dug, placed = placed, marks = body.marks, wield = body.wield,
		outcome = M.outcome, inventory = stacks(body.inv:get_list("main")),
		param2 = sparse, meta = metadata(),
	})
	return table.concat(names, "\n"), bytes(CELLS, function(i) return cells[i] end),
		bytes(W * W, function(i) return M.ground[i] end), rest
end

-- Blocks and ground as the client has them.
function M.read_blocks()
	return bytes(CELLS, function(i) return K[i] end) .. bytes(W * W, function(i) return M.ground[i] end)
end

-- ---- writing -------------------------------------------------------------------------------------

-- Put nodes into the arena: content ids and param2 by cell, and metadata.
function M.write_map(ids, param2, meta)
	for _, position in ipairs(minetest.find_nodes_with_meta(M.low, M.high)) do
		minetest.get_node_timer(position):stop()
		minetest.get_meta(position):from_table(nil)
	end
	local area, manip = open_map(false)
	local row, n = area.ystride, 0
	local block_by_id = M.block_by_id
	for x = 0, W - 1 do
		for z = 0, W - 1 do
			local at = column(area, x, z)
			for _ = 1, H do
				local id = ids[n]
				data[at] = id
				params[at] = param2[n] or 0
				K[n] = block_by_id[id]
				at = at + row
				n = n + 1
			end
		end
	end
	manip:set_data(data)
	manip:set_param2_data(params)
	manip:write_to_map(false)
	for _, entry in ipairs(meta) do
		local position = M.pos(entry.cell)
		minetest.get_meta(position):from_table({ fields = entry.fields, inventory = entry.lists })
		local timer = minetest.get_node_timer(position)
		if entry.timer[1] == 1 then
			timer:set(entry.timer[2], entry.timer[3])
		end
	end
	M.list_all()
end

-- Become a state that `read_state` gave. Everything is looked at before anything is changed; then,
-- if it is to be proved, the map is read back and must be the same.
function M.write_state(prove, names, cells, ground, rest)
	local ids = {}
	for name in (names .. "\n"):gmatch("(.-)\n") do
		assert(minetest.registered_nodes[name], "unknown node " .. name)
		ids[#ids + 1] = minetest.get_content_id(name)
	end
	assert(#cells == CELLS and #ground == W * W, "wrong size")
	local content = minetest.parse_json(rest)
	assert(type(content) == "table" and type(content.body) == "table", "no body")
	for _, name in ipairs(M.NUMBERS) do
		assert(type(content.body[name]) == "number", "no " .. name)
	end
	local by_cell, param2 = {}, {}
	for i = 0, CELLS - 1 do
		local id = ids[cells:byte(i + 1) + 1]
		if not id then error("unknown code of a node") end
		by_cell[i] = id
	end
	for i = 1, #content.param2, 2 do param2[content.param2[i]] = content.param2[i + 1] end
	-- From here on nothing fails.
	for i = 0, W * W - 1 do M.ground[i] = ground:byte(i + 1) end
	M.write_map(by_cell, param2, content.meta)
	local body = M.body
	for _, name in ipairs(M.NUMBERS) do body[name] = content.body[name] end
	for block = 0, 15 do
		body.dug[block] = content.dug[block + 1]
		body.placed[block] = content.placed[block + 1]
	end
	body.marks, body.wield, M.outcome = content.marks, content.wield, content.outcome
	body.inv:set_list("main", content.inventory)
	M.inventory_changed()
	M.events, M.changed = {}, {}
	M.perceive()
	if not prove then return end
	local names2, cells2, ground2, rest2 = M.read_state()
	assert(names == names2 and cells == cells2 and ground == ground2 and rest == rest2,
		"the restored state differs from the snapshot")
end
