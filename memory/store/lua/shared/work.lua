-- Work items of a conversation. Follows `scope`.
-- An item is `<person>|<sequence of the request>|<due, in ms>|<times that sending was begun>|<leased until, in ms>|
-- <token of the lease>|<JSON>`. `due` is 0 until the person has agreed to it. It does not expire with the conversation.
local function read_work(stored) return string.match(stored, '^(%-?%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$') end

-- Returns the stored form of an item. The last three arguments are left out if no worker has begun it.
local function work_of(person, seq, due, body, sends, held_until, token)
  return table.concat({whole(person), whole(seq), whole(due), whole(sends or 0), whole(held_until or 0), token or '',
    body}, '|')
end

-- Erases the items for which `goes(person, sequence)` is true.
local function drop_work(goes)
  for _, id in ipairs(redis.call('HKEYS', WORK)) do
    local person, seq = read_work(redis.call('HGET', WORK, id))
    if goes(person, tonumber(seq)) then redis.call('HDEL', WORK, id) end
  end
end
