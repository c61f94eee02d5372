-- Returns the consumers of a ready queue: a list of {name, pending, idle in ms}.
local function consumers_of(stream, group)
  local found, replies = {}, redis.pcall('XINFO', 'CONSUMERS', stream, group)
  if replies.err then return found end -- there is no group yet
  for _, reply in ipairs(replies) do
    local consumer = {}
    for i = 1, #reply, 2 do consumer[reply[i]] = reply[i + 1] end
    found[#found + 1] = consumer
  end
  return found
end
