-- Returns what is known of those who listen at a stream of bells: a list of {name, pending, idle in ms}.
local function consumers_of(stream, group)
  local found, replies = {}, redis.pcall('XINFO', 'CONSUMERS', stream, group)
  if replies.err then return found end -- nobody has listened yet
  for _, reply in ipairs(replies) do
    local consumer = {}
    for i = 1, #reply, 2 do consumer[reply[i]] = reply[i + 1] end
    found[#found + 1] = consumer
  end
  return found
end
