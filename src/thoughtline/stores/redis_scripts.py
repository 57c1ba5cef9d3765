"""Lua scripts that run in a Redis or Valkey server. Each is atomic and works on the keys of one tenant.

All keys of a tenant have the same hash tag, so they share a slot in a cluster. `p` is their common prefix:

    p m           hash   identity -> scope, created_at, chars, size, digests, arrival
    p r:identity  string the packed record; also expires by the server's clock
    p k:digest    zset   identities that a key or call id points to, by created_at
    p o           zset   all identities by created_at
    p x           zset   all identities by expires_at
    p n           hash   scope -> entries, chars, bytes, newest
    p d           zset   deletions by time
    p a           string number of arrivals
    p g           string how often a record was removed or a lineage got another one
"""

from __future__ import annotations

from functools import cache
from hashlib import sha1

_COMMON = """
local p = ARGV[1]

local function fits(scope, digests, want)
  local has = cjson.decode(scope)
  for i = 1, 3 do
    if want[i] ~= '' and want[i] ~= '=' .. has[i] then return false end
  end
  return want[4] == '' or string.find(digests, want[4], 1, true) ~= nil
end

local function drop(id)
  redis.call('DEL', p .. 'r:' .. id)
  redis.call('ZREM', p .. 'o', id)
  redis.call('ZREM', p .. 'x', id)
  local packed = redis.call('HGET', p .. 'm', id)
  if not packed then return 0 end
  local scope, created, chars, size, digests = unpack(cmsgpack.unpack(packed))
  redis.call('HDEL', p .. 'm', id)
  redis.call('INCR', p .. 'g')
  for at = 1, #digests, 16 do redis.call('ZREM', p .. 'k:' .. string.sub(digests, at, at + 15), id) end
  if redis.call('HINCRBY', p .. 'n', 'e' .. scope, -1) <= 0 then
    redis.call('HDEL', p .. 'n', 'e' .. scope, 'c' .. scope, 'b' .. scope, 't' .. scope)
  else
    redis.call('HINCRBY', p .. 'n', 'c' .. scope, -chars)
    redis.call('HINCRBY', p .. 'n', 'b' .. scope, -size)
  end
  return size
end
"""

SAVE = """
local now, expires, ttl_ms = ARGV[2], ARGV[3], ARGV[4]
local row_format = '<' .. string.rep('I4c0', 7)

local function barred(scope, created, digests)
  for _, packed in ipairs(redis.call('ZRANGEBYSCORE', p .. 'd', '(' .. created, now)) do
    if fits(scope, digests, cmsgpack.unpack(packed)) then return true end
  end
  return false
end

local at, rows = 1, ARGV[5]
while at <= #rows do
  local id, scope, created, chars, size, digests, data
  id, scope, created, chars, size, digests, data, at = struct.unpack(row_format, rows, at)
  if not barred(scope, created, digests) then
    if redis.call('HEXISTS', p .. 'm', id) == 0 then
      local arrival = redis.call('INCR', p .. 'a')
      local meta = {scope, created, tonumber(chars), tonumber(size), digests, arrival}
      redis.call('HSET', p .. 'm', id, cmsgpack.pack(meta))
      redis.call('ZADD', p .. 'o', created, id)
      redis.call('HINCRBY', p .. 'n', 'e' .. scope, 1)
      redis.call('HINCRBY', p .. 'n', 'c' .. scope, chars)
      redis.call('HINCRBY', p .. 'n', 'b' .. scope, size)
      local newest = redis.call('HGET', p .. 'n', 't' .. scope)
      if not newest or tonumber(newest) < tonumber(created) then
        redis.call('HSET', p .. 'n', 't' .. scope, created)
      end
      if redis.call('EXISTS', p .. 'k:' .. string.sub(digests, 1, 16)) == 1 then redis.call('INCR', p .. 'g') end
      for d = 1, #digests, 16 do
        local key = p .. 'k:' .. string.sub(digests, d, d + 15)
        redis.call('ZADD', key, created, id)
        redis.call('ZREMRANGEBYRANK', key, 0, -65)
      end
    end
    redis.call('SET', p .. 'r:' .. id, data, 'PX', ttl_ms)
    redis.call('ZADD', p .. 'x', expires, id)
  end
end
"""

FIND = """
local now, ttl, ttl_ms, renew_below, limit = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6]
local seen, found = {}, {}

local function look(id)
  local expires = redis.call('ZSCORE', p .. 'x', id)
  if not expires or tonumber(expires) <= now then return false end
  local data = redis.call('GET', p .. 'r:' .. id)
  if not data then return false end
  if tonumber(expires) - now < renew_below then
    redis.call('ZADD', p .. 'x', string.format('%.17g', now + ttl), id)
    redis.call('PEXPIRE', p .. 'r:' .. id, ttl_ms)
  end
  local hit = {id, data}
  found[#found + 1] = hit
  return hit
end

for at = 1, #ARGV[7], 16 do
  local digest = string.sub(ARGV[7], at, at + 15)
  for _, id in ipairs(redis.call('ZREVRANGE', p .. 'k:' .. digest, 0, limit - 1)) do
    if seen[id] == nil then seen[id] = look(id) end
    if seen[id] then table.insert(seen[id], digest) end
  end
end
return found
"""

MARK = """
redis.call('INCR', p .. 'g')
redis.call('ZADD', p .. 'd', ARGV[2], cmsgpack.pack({ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[2]}))
return tonumber(redis.call('GET', p .. 'a') or 0)
"""

# One step of a deletion: reads `ARGV[8]` records from rank `ARGV[7]` on, in order of creation.
DELETE = """
local last, want, skip, step = tonumber(ARGV[2]), {ARGV[3], ARGV[4], ARGV[5], ARGV[6]}, tonumber(ARGV[7]), ARGV[8]
local ids = redis.call('ZRANGE', p .. 'o', skip, skip + step - 1)
local gone = 0
for _, id in ipairs(ids) do
  local packed = redis.call('HGET', p .. 'm', id)
  local meta = packed and cmsgpack.unpack(packed)
  if not meta or (meta[6] <= last and fits(meta[1], meta[5], want)) then
    drop(id)
    gone = gone + 1
  end
end
return {gone, #ids == 0 and -1 or skip + #ids - gone}
"""

DROP = """
for at = 2, #ARGV do drop(ARGV[at]) end
"""

CLEAN = """
local ids = redis.call('ZRANGEBYSCORE', p .. 'x', '-inf', ARGV[2], 'LIMIT', 0, ARGV[4])
for _, id in ipairs(ids) do drop(id) end
redis.call('ZREMRANGEBYSCORE', p .. 'd', '-inf', ARGV[3])
return #ids
"""

EVICT = """
local excess, gone, freed = tonumber(ARGV[2]), 0, 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'x', '-inf', ARGV[3], 'LIMIT', 0, ARGV[4])) do
  if freed >= excess then break end
  freed = freed + drop(id)
  gone = gone + 1
end
return {gone, freed}
"""

# Reads `ARGV[10]` records at a time, from (created_at `ARGV[8]`, identity `ARGV[9]`) downwards, newest first. Returns
# at most `ARGV[7]` matching ones and where it stopped, or false at the end.
LIST = """
local now, want, limit = tonumber(ARGV[2]), {ARGV[3], ARGV[4], ARGV[5], ARGV[6]}, tonumber(ARGV[7])
local top, beyond, step = ARGV[8], ARGV[9], tonumber(ARGV[10])
local rows, last, offset, ids = {}, false, 0, nil

local function row(id, created)
  local packed = redis.call('HGET', p .. 'm', id)
  local expires = redis.call('ZSCORE', p .. 'x', id)
  if not packed or not expires or tonumber(expires) <= now then return false end
  local meta = cmsgpack.unpack(packed)
  local data = fits(meta[1], meta[5], want) and redis.call('GET', p .. 'r:' .. id)
  return data and {id, created, expires, data}
end

repeat
  ids = redis.call('ZREVRANGEBYSCORE', p .. 'o', top, '-inf', 'WITHSCORES', 'LIMIT', offset, step)
  offset = offset + step
  for at = 1, #ids, 2 do
    local id, created = ids[at], ids[at + 1]
    if beyond == '' or tonumber(created) < tonumber(top) or id < beyond then
      rows[#rows + 1] = row(id, created) or nil
      last = {created, id}
      if #rows >= limit then return {rows, last} end
    end
  end
until last or #ids < step * 2
return {rows, #ids == step * 2 and last}
"""

OPENINGS = """
local wanted, skip, step = {}, tonumber(ARGV[3]), tonumber(ARGV[4])
for _, session in ipairs(cjson.decode(ARGV[2])) do wanted[session] = true end
local ids, found = redis.call('ZRANGE', p .. 'o', skip, skip + step - 1), {}
for _, id in ipairs(ids) do
  local packed = redis.call('HGET', p .. 'm', id)
  local session = packed and cjson.decode(cmsgpack.unpack(packed)[1])[1]
  local data = session and wanted[session] and redis.call('GET', p .. 'r:' .. id)
  if data then
    wanted[session] = nil
    found[#found + 1] = {session, id, data}
  end
end
return {found, #ids == step and skip + step or -1}
"""

REPACK = """
if redis.call('EXISTS', p .. 'r:' .. ARGV[2]) == 1 then
  redis.call('SET', p .. 'r:' .. ARGV[2], ARGV[3], 'KEEPTTL')
end
"""


ALL = (SAVE, FIND, MARK, DELETE, DROP, CLEAN, EVICT, LIST, OPENINGS, REPACK)


def source(script: str) -> str:
    """Return a script in the form sent to a server."""
    return _COMMON + script


@cache
def sha(script: str) -> str:
    """Return the name of a script in a server."""
    return sha1(source(script).encode(), usedforsecurity=False).hexdigest()
