-- Says why the run of the open turn has to end although its lease is held. Follows `scope`.
-- `request` has `coalesce_ms` and `max_coalesce_ms`, how long after its newest and its oldest message a turn takes
-- further ones along; `is_shown`, if the person has seen a part of the reply; and `is_stopped`, if the run knows already
-- that its turn was stopped.
local MAX_ENTRIES = 32
local GROUP_MS = 1000 -- a comment arrives before the messages that are forwarded with it, an album picture by picture

-- Over separate connections an update may arrive after later ones. Returns whether the first one that waits did so
-- shortly after the messages of the open turn, from `oldest` to `until_ms`, so that its own turn comes first. A turn
-- that has failed or was stopped goes on: it would lose that.
local function was_overtaken(id, oldest, until_ms)
  local arrived = tonumber(redis.call('ZSCORE', SEEN, id) or 0)
  if arrived < oldest or arrived >= until_ms then return false end
  local failures, stopped = unpack(redis.call('HMGET', TURN, 'failures', 'stopped'))
  return not failures and not stopped
end

-- `ids_taken` are the ids of the open turn's messages. Returns them with the ids of those that followed quickly, in
-- the order of the mailbox; nil if none followed. An entry of kind c is never answered with others. Returns {}
-- if a message that cannot join was sent before the turn and came only now: then the turn begins afresh behind it.
local function with_followers(request, ids_taken)
  local taken, oldest, newest, count = {}, nil, nil, 0
  for id in string.gmatch(ids_taken or '', '%-?%d+') do taken[id], count = true, count + 1 end
  if count == 0 or redis.call('ZCARD', MAILBOX) == count then return nil end
  for id in pairs(taken) do
    local arrived = tonumber(redis.call('ZSCORE', SEEN, id) or 0)
    oldest, newest = math.min(oldest or arrived, arrived), math.max(newest or arrived, arrived)
  end
  local ids, kept, first_sender = {}, 0, nil
  local members = redis.call('ZRANGE', MAILBOX, 0, MAX_ENTRIES - 1)
  local first = read_entry(members[1])
  local overtaken_until_ms = math.min(newest + request.coalesce_ms, oldest + request.max_coalesce_ms)
  for _, member in ipairs(members) do
    local id, sender, kind = read_entry(member)
    if kind == 'c' or sender ~= (first_sender or sender) then break end
    if not taken[id] then
      local arrived = tonumber(redis.call('ZSCORE', SEEN, id) or 0)
      local pause_ms = kind == 'f' and math.max(request.coalesce_ms, GROUP_MS) or request.coalesce_ms
      local until_ms = math.min(newest + pause_ms, oldest + math.max(request.max_coalesce_ms, pause_ms))
      if arrived == 0 or arrived >= until_ms then break end
      newest = math.max(newest, arrived)
    end
    first_sender, ids[#ids + 1] = sender, id
    if taken[id] then kept = kept + 1 end
  end
  if kept == count then return #ids > count and ids or nil end
  return not taken[first] and was_overtaken(first, oldest, overtaken_until_ms) and {} or nil
end

-- Returns 'stopped', 'again' or nil, and the stored reply if there is one. Nothing ends a run whose reply is stored, or
-- that says that the turn was stopped. The third value is the id of the open turn.
local function interruption(request)
  local outbox, stopped, taken, id = unpack(redis.call('HMGET', TURN, 'outbox', 'stopped', 'taken', 'id'))
  if outbox or request.is_stopped then return nil, outbox, id end
  if stopped then return 'stopped', nil, id end
  return not request.is_shown and with_followers(request, taken) and 'again' or nil, nil, id
end
