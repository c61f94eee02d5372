-- Shared by all scripts of one scope. Each gets those keys of the scope that it uses; a key is known by its last word.
local key_of = {}
for _, key in ipairs(KEYS) do key_of[string.match(key, '[%a_]+$')] = key end
local META, LEASE, TURN, MAILBOX, SEEN = key_of.meta, key_of.lease, key_of.turn, key_of.mailbox, key_of.seen
local LOG, VEC, CONFIRM, LEARNED = key_of.log, key_of.vec, key_of.confirm, key_of.learned
local RECORDS, RVEC, DEAD_LETTERS = key_of.records, key_of.rvec, key_of.dead_letters
local WORK, OFF_RECORD, ALBUMS = key_of.reminders, key_of.off_record, key_of.albums

-- What META has as `wake_up` after a commit that gave the lease back. Until somebody takes the lease there is no open
-- turn then. Otherwise META has the wake-up of the last holder, or none.
local NO_LEASE = 'none'

-- The fields of META that `touch` needs, as they were read last; nil if they must be read again.
local expiry

-- Reads fields of META in one command, together with those that `versions` and `touch` need.
local function read_meta(...)
  local found = redis.call('HMGET', META, 'epoch', 'erasure', 'moved_from', 'expiring', ...)
  expiry = {erasure = found[2] or '0', moved_from = found[3], expiring = found[4] or ''}
  return unpack(found, 1, 4 + select('#', ...))
end

local function versions()
  local epoch, erasure = read_meta()
  return epoch or '0', erasure or '0'
end

-- Returns whether a step of a turn must be refused: its sender no longer holds the lease, or something was erased
-- since the sender loaded the conversation. A step has `token`, `epoch` and `erasure`. The caller names the versions if it
-- has just read them.
local function refused(step, epoch, erasure)
  if not epoch then epoch, erasure = versions() end
  return redis.call('GET', LEASE) ~= step.token or epoch ~= step.epoch or erasure ~= step.erasure
end

-- Returns whether the history names this Telegram message as a part of one of the answers among its newest 100 messages.
local function counts_in_history(message_id)
  for _, entry in ipairs(redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 100)) do
    local role, ids = entry[2][4], ',' .. entry[2][14] .. ','
    if string.sub(role, 1, 9) == 'assistant' and string.find(ids, ',' .. message_id .. ',', 1, true) then return true end
  end
  return false
end

-- Answers a refused step of a turn. 'superseded' means that the part sent last counts as sent, or may count:
-- this very step may have been carried out before, and only its answer was lost. `sent` lists the message ids
-- that the step marks as sent; the last one is the part in question. A commit marks none. 'erased' means that the turn's
-- question was erased before anybody closed the turn, so no worker will show a reply to it. If something was erased after
-- another worker had closed the turn, the history says whether the part counts.
-- If the turn is gone, the store no longer knows which parts count.
local function refusal(step, sent)
  local epoch, erasure, _, _, closed = read_meta('closed')
  local last = string.match(sent, '%d+$')
  if (epoch or '0') ~= step.epoch or (erasure or '0') ~= step.erasure then
    local is_closed = string.find(closed or '', ',' .. step.turn .. '|', 1, true)
    if last and counts_in_history(last) then return 'superseded' end
    local waits = redis.call('ZCOUNT', MAILBOX, step.turn, step.turn) > 0
    return (is_closed or waits) and 'refused' or 'erased'
  end
  local open = redis.call('HMGET', TURN, 'id', 'sent')
  if open[1] ~= step.turn then return 'superseded' end
  local marked = ',' .. (open[2] or '') .. ','
  return last and string.find(marked, ',' .. last .. ',', 1, true) and 'superseded' or 'refused'
end

-- Returns whether each of these keys got an expiry after the last erasure.
local function have_expiry(keys)
  if not expiry then versions() end
  local erasure, names = string.match(expiry.expiring, '^(%d+)|%d+|(.*)$')
  if erasure ~= expiry.erasure then return false end
  for _, key in ipairs(keys) do
    if not string.find(names, ',' .. string.match(key, '[%a_]+$') .. ',', 1, true) then return false end
  end
  return true
end

-- Lets a key that the caller has written expire with the scope.
local function expire_with_scope(key)
  local left_ms = have_expiry({key}) and 0 or redis.call('PTTL', META)
  if left_ms <= 0 then return end
  redis.call('PEXPIRE', key, left_ms)
  if not have_expiry({META}) then return end -- the note is of an earlier version, so it cannot take another key
  expiry.expiring = expiry.expiring .. string.match(key, '[%a_]+$') .. ','
  redis.call('HSET', META, 'expiring', expiry.expiring)
end

-- Sets one expiry for the whole scope. The alias of a moved chat and the operator's documents do not expire;
-- the lease and the confirmations have expiries of their own. The mailbox and the open turn also get theirs when
-- they are created, because they come and go with each turn.
-- `written` lists the keys that the caller has written. If the scope had its expiry set within the hour (of short lives,
-- within a 24th), only those of them that are new get one. `now` is the time if the caller has it. `expiring` in META
-- says when which keys got an expiry, as `<erasure version>|<ms>|,<key>,<key>,`. An erasure may delete keys, so it makes
-- the note void. Anything else that deletes one of these keys must remove the note.
local function touch(ttl_s, written, now)
  if not expiry then versions() end
  if string.find(META, '{d:', 1, true) or expiry.moved_from then return end
  now = now or now_ms()
  local passed_ms = now - (written and have_expiry({META}) and string.match(expiry.expiring, '|(%d+)|') or 0)
  if passed_ms >= 0 and passed_ms < 1000 * math.min(3600, ttl_s / 24) then
    for _, key in ipairs(written) do expire_with_scope(key) end
    return
  end
  local names = ''
  for _, key in ipairs({META, TURN, MAILBOX, SEEN, LOG, VEC, LEARNED, RECORDS, RVEC, DEAD_LETTERS}) do
    if redis.call('EXPIRE', key, ttl_s) == 1 then names = names .. string.match(key, '[%a_]+$') .. ',' end
  end
  expiry.expiring = expiry.erasure .. '|' .. whole(now) .. '|,' .. names
  redis.call('HSET', META, 'expiring', expiry.expiring)
end

-- Counts a change of what was learned: of fields, records, or vectors of records. So readers know which answer is the
-- newer one, and what they have already. The first revision is the time, because that of a scope which has expired must
-- not be ahead of it. `revision_after` returns the revision after one that was read; nil stands for none.
local function revision_after(revision) return revision and revision + 1 or now_ms() end

local function count_revision()
  if redis.call('HINCRBY', META, 'revision', 1) == 1 then redis.call('HSET', META, 'revision', whole(now_ms())) end
end

-- Gives fields of what was learned their values, '' for none. Without any field left the key and its expiry are gone.
-- The caller counts the revision.
local function set_fields(values)
  local set, removed = {}, {}
  for name, value in pairs(values) do
    if value == '' then
      removed[#removed + 1] = name
    else
      set[#set + 1] = name
      set[#set + 1] = value
    end
  end
  if #removed > 0 then redis.call('HDEL', LEARNED, unpack(removed)) end
  if #set > 0 then
    redis.call('HSET', LEARNED, unpack(set))
  elseif #removed > 0 then
    redis.call('HDEL', META, 'expiring')
    expiry = nil
  end
end

-- Returns the last entry of a stream, or nil; and the number in an entry's id.
local function last_of(stream) return redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1] end
local function number_of(entry) return string.match(entry[1], '^%d+') end

-- If META was lost (evicted, or deleted by hand) and the streams stay, new entries get the numbers after the stored ones.
-- Otherwise Redis would refuse every commit. The epoch becomes the current time, so no cut refuses what is learned from now
-- on. The generation is 0, because the sequences go on: sources that other scopes already have still name their messages.
-- Returns the numbers of the newest message and exchange, nil without one.
local function number_on()
  local said, learned = last_of(LOG), last_of(RECORDS)
  if learned then redis.call('HSETNX', META, 'next_record', number_of(learned)) end
  if not said then return nil end
  if redis.call('HSETNX', META, 'next_seq', number_of(said)) == 1 then
    redis.call('HSET', META, 'exchanges', said[2][2], 'epoch', whole(now_ms()), 'generation', 0)
  end
  return number_of(said), said[2][2]
end

-- A mailbox member is `<update id>|<sender id>|<kind>|<body>`. The kind is c for an entry that is answered
-- alone (`Entry.is_alone`: a command, a document, an edit), f for a forwarded message or one of an album, t for others.
local function read_entry(member)
  local id, sender, kind = string.match(member, '^(%-?%d+)|(%-?%d+)|(%a)|')
  return id, sender, kind
end

-- Returns from when until when (ms) the latest session off the record lasts or lasted, nothing if there was none.
-- It is stored as `<since>|<until>|<the mailbox member that ends it>`; `stored` is that, if the caller has read it.
local function off_record(stored)
  stored = stored or redis.call('HGET', META, 'off_record') or ''
  local since, ends_at = string.match(stored, '^(%d+)|(%d+)|')
  return tonumber(since), tonumber(ends_at)
end

-- Stores questions, each a nonce and `<kind>|<who is asked>|<what it is about>`, a receipt, or the token of a closed
-- work item. Each new one renews the hour of all, so somebody who asks for questions without end would fill Redis. Above
-- 1,000 all earlier ones are erased, also those of the last minute.
local function ask(questions)
  if questions and redis.call('HLEN', CONFIRM) > 1000 then redis.call('DEL', CONFIRM) end
  for nonce, stored in pairs(questions or {}) do
    redis.call('HSET', CONFIRM, nonce, stored)
    redis.call('EXPIRE', CONFIRM, 3600)
  end
end

-- Tells the process that holds the lease to look at its turn. If nobody hears it, the turn finds out later. An
-- operator may have forbidden channels to this user of Redis, which must not stop the caller.
local function signal()
  local prefix, tag = string.match(META, '^(.-){([^}]*)}')
  redis.pcall('PUBLISH', prefix .. 'signals', tag)
end

-- Returns the dead letters of this conversation, oldest first. `set_aside` says how they are stored.
local function dead_letters()
  local letters = {}
  for _, field in ipairs(redis.call('HKEYS', DEAD_LETTERS)) do
    if not string.find(field, ':', 1, true) then
      local at, sender = string.match(redis.call('HGET', DEAD_LETTERS, field), '^(%d+)|[^|]*|(%-?%d+)$')
      letters[#letters + 1] = {id = field, at = tonumber(at), sender = sender}
    end
  end
  table.sort(letters, function(one, other) return one.at < other.at end)
  return letters
end

-- Removes one dead letter and returns its mailbox members.
local function drop_letter(id)
  local members = {}
  redis.call('HDEL', DEAD_LETTERS, id)
  for _, field in ipairs(redis.call('HKEYS', DEAD_LETTERS)) do
    if string.sub(field, 1, #id + 1) == id .. ':' then
      members[#members + 1] = redis.call('HGET', DEAD_LETTERS, field)
      redis.call('HDEL', DEAD_LETTERS, field)
    end
  end
  return members
end

-- After a week without updates Telegram starts again at a random id. So the id of an update from long ago, more than two
-- days, says nothing about the order. Without a time it is from long ago.
local function is_long_ago(at) return now_ms() - (at or 0) > 172800000 end

-- Notes that a person's updates up to this one are forgotten here. An older update changes nothing.
local function cut_person(person, update)
  local before, at = string.match(redis.call('HGET', META, 'cut:' .. person) or '', '^(%d+)|(%d+)$')
  if tonumber(update) <= tonumber(before or '-inf') and not is_long_ago(at) then return end
  redis.call('HSET', META, 'cut:' .. person, update .. '|' .. whole(now_ms()))
end
