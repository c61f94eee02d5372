-- Uses: scope
-- Keys: meta, lease, turn
-- ARGV[1], a JSON object without fields; ARGV[2]: a button as an outbox has it.
-- Answers 1 if the stored reply of the open turn has this button, else 0. A reply may have large files, so it is searched here.
return string.find(redis.call('HGET', TURN, 'outbox') or '', ARGV[2], 1, true) and 1 or 0
