# The bot in a container: Debian's Python, our packages, and nothing else. There is no shell, no package manager and no
# root, and nothing is written outside /data and /tmp.
FROM debian:trixie-slim AS packages
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends binutils ca-certificates python3-pip \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# `--build-arg REQUIREMENTS=requirements-traces.txt` adds what traces and error reports need.
ARG REQUIREMENTS=requirements.txt
COPY requirements.txt requirements-traces.txt ./
# What the bot never reads of its packages goes: tests, type stubs, headers, debug symbols, the codec of AVIF pictures,
# and the locales of babel but those of our languages, which have the names of cities.
RUN python3.13 -m venv --without-pip /venv \
 && python3.13 -m pip --python /venv/bin/python install --no-cache-dir --no-compile --require-hashes \
      --only-binary :all: -r "$REQUIREMENTS" \
 && find /venv -type d \( -name tests -o -name benchmarks -o -name include -o -name f2py \) -prune -exec rm -rf {} + \
 && find /venv -type f \( -name '*.py[ixd]' -o -name '*.pxi' -o -name '*.[ah]' -o -name '*avif*.so*' \
      -o -path '*/locale-data/*.dat' ! -name root.dat ! -name de.dat ! -name en.dat ! -name es.dat ! -name fa.dat \
      ! -name fr.dat ! -name id.dat ! -name it.dat ! -name pt.dat ! -name ru.dat ! -name tr.dat ! -name uk.dat \) \
      -delete \
 && find /venv -type f -name '*.so*' -exec strip --strip-unneeded {} +

# What Python needs of Debian. The list of packages stays readable for scanners.
FROM packages AS system
WORKDIR /debs
RUN apt-get update \
 && apt-get download base-files libbz2-1.0 libc6 libexpat1 libffi8 libgcc-s1 liblzma5 libpython3.13-minimal \
      libpython3.13-stdlib libsqlite3-0 libssl3t64 libstdc++6 libuuid1 libzstd1 media-types netbase python3.13-minimal \
      zlib1g \
 && mkdir -p /system/var/lib/dpkg/status.d \
 && for deb in *.deb; do \
      dpkg-deb -x "$deb" /system && dpkg-deb -f "$deb" > "/system/var/lib/dpkg/status.d/${deb%%_*}"; \
    done \
 && find /system/usr/share/doc -type f -not -name copyright -delete \
 && rm -rf /system/usr/share/man /system/usr/share/lintian /system/usr/lib/*/gconv /system/usr/lib/python3.13 \
 && mkdir -p /system/etc/ssl/certs \
 && cp /etc/ssl/certs/ca-certificates.crt /system/etc/ssl/certs/ \
 && cp /etc/nsswitch.conf /system/etc/ \
 && ldconfig -r /system

FROM system AS bot
WORKDIR /app
COPY config config
COPY memory memory
COPY bot bot
# Bytecode of what the start imports is written here, because the running bot may not write any.
RUN find /usr/lib/python3.13 -name __pycache__ -prune -exec rm -rf {} + \
 && /venv/bin/python -c 'import bot.app, bot.features.check.command_line, bot.playground.play; bot.features.modules("feature")' \
 && cp -a /usr/lib/python3.13 /system/usr/lib/ \
 && rm -rf /system/usr/lib/python3.13/ensurepip /system/usr/lib/python3.13/pydoc_data \
      /system/usr/lib/python3.13/test \
 && mkdir /data

FROM scratch
COPY --from=bot /system /
COPY --from=bot /venv /venv
COPY --from=bot /app /app
# The embedded Valkey, if there is no REDIS_URL, keeps its data here: mount a volume. There is no VOLUME line, because
# Railway refuses an image that has one.
COPY --from=bot --chown=10001:10001 /data /data
WORKDIR /app
USER 10001:10001
ENV PATH=/venv/bin PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp DATA_DIR=/data PORT=8080 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=4)"]
# A stopping process finishes its turns or hands them over within 20 seconds.
STOPSIGNAL SIGTERM
CMD ["python", "-m", "bot"]
