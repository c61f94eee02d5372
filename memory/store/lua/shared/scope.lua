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

-- Answers a refused step of a turn. 'superseded' means that the part sent last counts as sent, or may count:
-- this very step may have been carried out before, and only its answer was lost. `sent` lists the message ids
-- that the step marks as sent; the last one is the part in question. A commit marks none. 'erased' means that the turn's
-- question was erased before anybody closed the turn, so no worker will show a reply to it.
-- If the turn is gone, the store no longer knows which parts count.
local function refusal(step, sent)
  local epoch, erasure, _, _, closed = read_meta('closed')
  if (epoch or '0') ~= step.epoch or (erasure or '0') ~= step.erasure then
    local is_closed = string.find(closed or '', ',' .. step.turn .. '|', 1, true)
    local waits = redis.call('ZCOUNT', MAILBOX, step.turn, step.turn) > 0
    return (is_closed or waits) and 'refused' or 'erased'
  end
  local open = redis.call('HMGET', TURN, 'id', 'sent')
  if open[1] ~= step.turn then return 'superseded' end
  local marked, last = ',' .. (open[2] or '') .. ',', string.match(sent, '%d+$')
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

local function columns_of(message, exchange)
  local columns = {'x', exchange, 'r', message.role, 't', message.text, 's', message.sent_at,
    'i', message.sender_id, 'n', message.sender_name, 'm', message.message_ids, 'k', message.tokens}
  for _, each in ipairs({{'f', message.forwarded_from}, {'d', message.forwarded_at}, {'u', message.unseen},
    {'l', message.lengths}, {'p', message.replied_to}, {'w', message.used}, {'h', message.photo}, {'a', message.album},
    {'e', message.edited_at}}) do
    if each[2] then
      columns[#columns + 1] = each[1]
      columns[#columns + 1] = each[2]
    end
  end
  return columns
end

-- Appends messages to the log after sequence `seq`, and returns the sequences of the first one, 0 without messages, and
-- of the last one. The caller writes the latter to META as `next_seq`.
-- `generation` is the time of a conversation's first message in ms. When a conversation has expired, its
-- sequences and epochs start again; other scopes tell the old conversation from the new one by this time.
local function append(messages, exchange, seq)
  local first
  for _, message in ipairs(messages) do
    seq = seq + 1
    first = first or seq
    if seq == 1 then redis.call('HSET', META, 'generation', whole(1000 * message.sent_at)) end
    redis.call('XADD', LOG, whole(seq) .. '-0', unpack(columns_of(message, exchange)))
  end
  return first or 0, seq
end

-- Stores the questions of a reply, each a nonce and `<kind>|<who is asked>|<what it is about>`. Each new one renews the
-- hour of all, so somebody who asks for questions without end would fill Redis. Above 1,000 the older ones are gone.
local function ask(questions)
  if questions and redis.call('HLEN', CONFIRM) > 1000 then redis.call('DEL', CONFIRM) end
  for nonce, stored in pairs(questions or {}) do
    redis.call('HSET', CONFIRM, nonce, stored)
    redis.call('EXPIRE', CONFIRM, 3600)
  end
end

-- An erasure keeps its receipt, so that a repeated call gets the same answer. If the erasure answered a
-- question, the question follows the receipt: `done|<counts>|<kind>|<who was asked>`.
local function receipt_of(id)
  local found = redis.call('HGET', CONFIRM, id)
  return found and string.match(found, '^done|([^|]*)'), found
end

local function keep_receipt(id, counts)
  local receipt = table.concat(counts, ',')
  local asked = string.match(redis.call('HGET', CONFIRM, id) or '', '^%a+|%-?%d+')
  local done = 'done|' .. receipt .. (asked and '|' .. asked or '')
  redis.call('HSET', CONFIRM, id, done)
  redis.call('EXPIRE', CONFIRM, 3600)
  return receipt
end

-- Writes a stream again without its deleted entries. Redis keeps the bytes of a deleted entry, in memory and
-- in its files, while neighbors in the same node stay. `instead` maps an entry id to its new fields.
local function leave_no_bytes(key, instead)
  local kept, ttl = redis.call('XRANGE', key, '-', '+'), redis.call('PTTL', key)
  redis.call('UNLINK', key)
  for _, entry in ipairs(kept) do
    local fields = instead and instead[entry[1]] or entry[2]
    redis.call('XADD', key, entry[1], unpack(fields))
  end
  if ttl > 0 then redis.call('PEXPIRE', key, ttl) end
end

-- Tells the process that holds the lease to look at its turn. If nobody hears it, the turn finds out later. An
-- operator may have forbidden channels to this user of Redis, which must not stop the caller.
local function signal(channel)
  local tag = string.match(META, '{([^}]*)}')
  redis.pcall('PUBLISH', channel, tag)
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

-- After an erasure the holder of the lease must load the conversation again, because it has read what is now
-- erased. This does not count as a failed attempt. If the turn was being given up, it is tried again instead.
local function begin_again()
  redis.call('DEL', LEASE)
  drop_letter(redis.call('HGET', TURN, 'id') or '')
  redis.call('HDEL', TURN, 'outbox', 'sending', 'sent')
  if redis.call('HEXISTS', TURN, 'attempts') == 1 then redis.call('HSET', TURN, 'attempts', 0) end
  redis.call('HINCRBY', META, 'erasure', 1)
  expiry = nil
end

-- Removes the dead letters up to an update, of one sender or of everybody; returns the number of messages.
local function drop_letters(last_update, sender)
  local dropped = 0
  for _, letter in ipairs(dead_letters()) do
    local is_old = last_update == '+inf' or tonumber(letter.id) <= tonumber(last_update)
    if is_old and (not sender or sender == letter.sender) then
      dropped = dropped + #drop_letter(letter.id)
    end
  end
  return dropped
end

-- Notes that a person's updates up to this one are forgotten here. An older update changes nothing.
local function cut_person(person, update)
  local before = string.match(redis.call('HGET', META, 'cut:' .. person) or '', '^(%d+)|')
  if tonumber(update) <= tonumber(before or '-inf') then return end
  redis.call('HSET', META, 'cut:' .. person, update .. '|' .. whole(now_ms()))
end

-- A work item is `<person>|<sequence of the request>|<due, in ms>|<times that sending was begun>|<leased until, in ms>|
-- <token of the lease>|<JSON>`. `due` is 0 until the person has agreed to it. It does not expire with the conversation.
local function read_work(stored) return string.match(stored, '^(%-?%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$') end

-- Erases the work items for which `goes(person, sequence)` is true.
local function drop_work(goes)
  for _, id in ipairs(redis.call('HKEYS', WORK)) do
    local person, seq = read_work(redis.call('HGET', WORK, id))
    if goes(person, tonumber(seq)) then redis.call('HDEL', WORK, id) end
  end
end

-- Erases the questions that hold words, of one person or of everybody: whether a tool may run, and whether something
-- is imported. One is `tool|<who was asked>|<JSON>` or `import|<who was asked>|<JSON>`. `keeps` is the kind that stays.
local function drop_questions_with_words(person, keeps)
  for _, field in ipairs(CONFIRM and redis.call('HKEYS', CONFIRM) or {}) do
    local kind, asked = string.match(redis.call('HGET', CONFIRM, field), '^(%a+)|(%-?%d+)|')
    local has_words = (kind == 'tool' or kind == 'import') and kind ~= keeps
    if has_words and asked == (person or asked) then redis.call('HDEL', CONFIRM, field) end
  end
end

-- Ends the permission of the operator to look. The update that gave it stays known, so that it counts only once.
local function end_look()
  local newest = string.match(redis.call('HGET', META, 'look') or '', '^(%d+)|')
  if newest then redis.call('HSET', META, 'look', newest .. '|0') end
end

-- Erases all content. Fence, epoch, erasure version, sequences and seen updates must outlive it.
-- Waiting messages up to `last_update` are erased, and intake drops such messages from now on; '+inf' erases
-- all that wait and lets intake take everything. `kept` is the id of the first message that stays, or nil; `gone`
-- has the sequences of later messages that were erased, too.
local function wipe(last_update, kept, gone)
  local counts = {redis.call('XLEN', LOG), redis.call('XLEN', VEC)}
  if kept then
    counts[1] = redis.call('XTRIM', LOG, 'MINID', kept)
    counts[2] = redis.call('XTRIM', VEC, 'MINID', kept)
    leave_no_bytes(LOG)
    leave_no_bytes(VEC)
  else
    redis.call('UNLINK', LOG, VEC)
    redis.call('HDEL', META, 'vector_fingerprint', 'session', 'lexical_only', 'dropped_vectors', 'dropped_messages')
  end
  counts[5] = redis.call('XLEN', RECORDS)
  redis.call('UNLINK', LEARNED, RECORDS, RVEC, OFF_RECORD, ALBUMS)
  redis.call('HDEL', META, 'off_record_said')
  redis.call('HDEL', META, 'record_vector_fingerprint')
  end_look()
  drop_questions_with_words()
  local first_kept = kept and tonumber(string.match(kept, '^%d+'))
  drop_work(function(_, seq) return not kept or seq < first_kept or gone[seq] end)
  redis.call('DEL', LEASE, TURN)
  counts[3] = redis.call('ZREMRANGEBYSCORE', MAILBOX, '-inf', last_update) + drop_letters(last_update)
  redis.call('HINCRBY', META, 'epoch', 1)
  redis.call('HINCRBY', META, 'erasure', 1)
  expiry = nil
  local before = redis.call('HGET', META, 'cut_update')
  if last_update ~= '+inf' and tonumber(last_update) > tonumber(before or '-inf') then
    redis.call('HSET', META, 'cut_update', last_update, 'cut_at', whole(now_ms()))
  end
  counts[4] = redis.call('ZCARD', MAILBOX)
  return counts
end
