# The bot in a container: no build tools, no root, nothing written outside /data and /tmp.
FROM python:3.13-slim AS packages
WORKDIR /build
COPY requirements.txt .
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
# Tests, type stubs and debug symbols of packages are a sixth of the image.
RUN python -m venv --without-pip /venv \
 && python -m pip --python /venv/bin/python install --no-cache-dir --no-compile --require-hashes \
      --only-binary :all: -r requirements.txt \
 && find /venv -type d -name tests -prune -exec rm -rf {} + \
 && find /venv -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' \) -delete \
 && find /venv -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} +

FROM python:3.13-slim
COPY --from=packages /venv /venv
WORKDIR /app
COPY config config
COPY memory memory
COPY bot bot
# The embedded Valkey, if there is no REDIS_URL, keeps its data here.
# Bytecode of what the start imports is written here, because the running bot may not write any.
RUN install -d -o 10001 -g 10001 /data \
 && /venv/bin/python -c 'import bot.app, bot.check.command, bot.ingest, bot.playground.play'
VOLUME /data
USER 10001:10001
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp DATA_DIR=/data PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=4)"]
# A stopping process finishes its turns or hands them over within 20 seconds.
STOPSIGNAL SIGTERM
CMD ["python", "-m", "bot"]
