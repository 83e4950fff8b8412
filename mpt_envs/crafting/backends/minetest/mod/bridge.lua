-- The socket: one client, one request at a time. While the client is talking the server's step is
-- held, so that a request is answered in microseconds; without a client the server ends.
--
-- A request is a line "NAME LENGTH WORDS...", followed by LENGTH bytes. An answer is a line "ok
-- TEXT-LENGTH BLOB-LENGTH" or "error TEXT-LENGTH 0", followed by both.
local M, insecure = ...

-- The secure `require` of mods has no C libraries; the library's own requires need this one, too.
local secure_require = require
require = insecure.require -- luacheck: ignore
local has_socket, socket = pcall(insecure.require, "socket")
local has_unix, unix = pcall(insecure.require, "socket.unix")
require = secure_require -- luacheck: ignore
if not has_socket or not has_unix then
	error("MPT-NO-LUA-SOCKET " .. tostring(has_socket and unix or socket))
end

local settings = minetest.settings
local path = assert(settings:get("mpt_socket"), "mpt_socket is not set")
local IDLE = 0.25 -- seconds without a request after which the engine gets its turn
local PATIENCE = 60 * 1000000 -- microseconds that the first client may take to come

local server = (type(unix) == "table" and unix.stream or unix)()
assert(server:bind(path))
assert(server:listen(1))
server:settimeout(0)

local client, partial = nil, ""
local waiting = false -- for the engine to generate land
local ended = false
local born = minetest.get_us_time()

local function finish()
	if not ended then
		ended = true
		minetest.request_shutdown("", false, 0)
	end
end

local function hang_up()
	if client then client:close() end
	client = nil
	finish()
end

local function send(s)
	local at = 1
	client:settimeout(10)
	while at <= #s do
		local last, problem, part = client:send(s, at)
		if not last and problem ~= "timeout" then return hang_up() end
		at = (last or part) + 1
	end
end

local function answer(word, text, blob)
	if not client then return end
	blob = blob or ""
	send(word .. " " .. #text .. " " .. #blob .. "\n" .. text .. blob)
end

local numbers = {}
local function report()
	local n = M.report(numbers)
	return table.concat(numbers, ",", 1, n)
end

local HANDLERS = {}
function HANDLERS.hello()
	local version = minetest.get_version()
	return version.project .. " " .. version.string
end
function HANDLERS.turn(words)
	M.turn(tonumber(words[1]), tonumber(words[2]), tonumber(words[3]))
	return report()
end
function HANDLERS.begin(words)
	local chunks = {}
	for i, word in ipairs(words) do chunks[i] = tonumber(word) end
	M.begin(chunks)
	return report(), M.read_blocks()
end
function HANDLERS.read()
	local names, cells, ground, rest = M.read_state()
	return #names .. " " .. #rest, names .. rest .. cells .. ground
end
function HANDLERS.write(words, blob)
	M.prepare()
	local prove, n, r = words[1] == "1", tonumber(words[2]), tonumber(words[3])
	local cells = M.CELLS
	M.write_state(prove, blob:sub(1, n), blob:sub(n + r + 1, n + r + cells), blob:sub(n + r + cells + 1),
		blob:sub(n + 1, n + r))
	return report(), M.read_blocks()
end
-- For tests: the node at x, y, z, and a line of the server's memory use in kilobytes.
function HANDLERS.node(words)
	return M.name_at(M.cell(tonumber(words[1]), tonumber(words[2]), tonumber(words[3])))
end
function HANDLERS.memory()
	collectgarbage()
	return tostring(collectgarbage("count"))
end
function HANDLERS.stop() finish() return "" end

local running = nil -- the coroutine of the request that waits

local function step(routine, ...)
	local alive, good, text, blob = coroutine.resume(routine, ...)
	if not alive then
		waiting, running = false, nil
		answer("error", tostring(good))
	elseif coroutine.status(routine) == "dead" then
		waiting, running = false, nil
		if good then answer("ok", text, blob) else answer("error", tostring(text)) end
	else
		waiting, running = true, routine
	end
end

function M.resume()
	if running then step(running) end
end

local function serve(line, blob)
	local words = {}
	for word in line:gmatch("%S+") do words[#words + 1] = word end
	local handler = HANDLERS[words[1]]
	table.remove(words, 1)
	table.remove(words, 1)
	if not handler then return answer("error", "unknown request") end
	step(coroutine.create(function()
		local out = { xpcall(function() return handler(words, blob) end, debug.traceback) }
		return unpack(out)
	end))
end

minetest.register_globalstep(function()
	if ended then return end
	if not client then
		client = server:accept()
		if not client then
			if minetest.get_us_time() - born > PATIENCE then finish() end
			return
		end
		partial = ""
	end
	while client and not waiting do
		client:settimeout(IDLE)
		local line, problem, part = client:receive("*l", partial)
		if line then
			partial = ""
			local size = tonumber(line:match("^%S+ (%d+)")) or 0
			local blob = ""
			if size > 0 then
				client:settimeout(30)
				blob = client:receive(size)
				if not blob then return hang_up() end
			end
			serve(line, blob)
		elseif problem == "timeout" then
			partial = part or ""
			return
		else
			return hang_up()
		end
	end
end)
