-- Uses: scope, messages, work, erasing
-- ARGV[1], a JSON object: `nonce` of the question; `person` who pressed the button; `last_update`, the update id of
-- the confirmation; `by_admin`, whether any admin may confirm; `ttl_s`. Erases the conversation, once for a nonce.
-- Answers {'done', counts}, or {'unknown'} or {'not_yours'} if nothing was erased.
local request = cjson.decode(ARGV[1])
drop_damaged()
local receipt, asked = receipt_of(request.nonce)
if receipt then return {'done', receipt} end
if not asked then return {'unknown'} end
local kind, asker = string.match(asked, '^(%a+)|(%-?%d+)')
if kind ~= 'clear' or (asker ~= request.person and not request.by_admin) then return {'not_yours'} end
local mode = redis.call('HGET', LEARNED, 'learning_mode') or '' -- a setting, like memory that is off
local counts = wipe(request.last_update)
set_fields({learning_mode = mode})
count_revision()
touch(request.ttl_s)
return {'done', keep_receipt(request.nonce, counts)}
