-- Work items of a conversation. Is loaded after `scope`.
-- An item is `<person>|<sequence of the request>|<due, in ms>|<times that sending was begun>|<leased until, in ms>|
-- <token of the lease>|<JSON>`. `due` is 0 before the person has agreed, and after a task was done. Items do not
-- expire with the conversation; if it has expired since the request, the sequence is above EXPIRED (see `append`).
local function read_work(stored) return string.match(stored, '^(%-?%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$') end

-- Returns the stored form of an item. `held_until` and `token` are left out without a lease, `sends` too if none began.
local function work_of(person, seq, due, body, sends, held_until, token)
  return table.concat({whole(person), whole(seq), whole(due), whole(sends or 0), whole(held_until or 0), token or '',
    body}, '|')
end

-- Erases the items for which `goes(person, sequence)` is true, and damaged ones: nobody can read what they say.
local function drop_work(goes)
  for _, id in ipairs(redis.call('HKEYS', WORK)) do
    local person, seq = read_work(redis.call('HGET', WORK, id))
    if not person or goes(person, tonumber(seq)) then redis.call('HDEL', WORK, id) end
  end
end
