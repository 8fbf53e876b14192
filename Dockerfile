# The worker's image. Pin the base by digest as well where you build for production:
#   docker buildx imagetools inspect python:3.13.16-slim-trixie --format '{{.Manifest.Digest}}'
#   docker build --build-arg PYTHON_IMAGE=python:3.13.16-slim-trixie@sha256:... .
ARG PYTHON_IMAGE=python:3.13.16-slim-trixie

FROM ${PYTHON_IMAGE} AS build
ENV UV_LINK_MODE=copy UV_NO_CACHE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements-uv.txt requirements.lock requirements-runtime.lock ./
RUN python -m venv /uv \
    && /uv/bin/pip install --only-binary :all: --require-hashes -r requirements-uv.txt \
    && python -m venv --without-pip /app \
    && /uv/bin/uv pip install --python /app/bin/python --compile-bytecode \
        --only-binary :all: --require-hashes -r requirements-runtime.lock
COPY pyproject.toml README.md LICENSE worker.py ./
COPY activities activities
COPY fixtures fixtures
COPY triage triage
COPY workflows workflows
RUN /uv/bin/uv build --wheel --out-dir /wheel --require-hashes --build-constraints requirements.lock . \
    && /uv/bin/uv pip install --python /app/bin/python --compile-bytecode --no-deps /wheel/*.whl

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 triage \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin triage
# Owned by root: the worker cannot change its own code.
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 TRIAGE_HOME=/tmp/triage
USER 10001:10001
WORKDIR /app
# The worker finishes what it holds before it goes; give it more time than TRIAGE_SHUTDOWN_GRACE_SECONDS.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["triage", "doctor"]
CMD ["python", "-m", "worker"]
