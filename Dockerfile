# The service: API, worker and migration are this one image with different commands.
#   docker build .                               with torch, any sentence-transformers model
#   docker build --build-arg TORCH=without .     the default model through onnxruntime alone, a sixth of the size
#   docker build --target neo4j .                Neo4j with the Graph Data Science that graph-mem is locked to
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS code
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/opt/graph-mem \
    GRAPH_MEM_CACHE_DIR=/opt/graph-mem-cache
WORKDIR /src
RUN pip install --no-cache-dir uv==0.13.9
COPY pyproject.toml README.md LICENSE ./
COPY graph_mem ./graph_mem
COPY schema ./schema
COPY graphql ./graphql

FROM code AS build
ARG TORCH=with
# The versions are those of requirements.lock: pyproject.toml constrains every one of them.
RUN set -eu; \
    set -- --no-default-groups --no-editable; \
    if [ "$TORCH" = without ]; then \
        for name in torch triton sentence-transformers \
            $(sed -n 's/^    "\(\(nvidia\|cuda\)-[a-z0-9-]*\)==.*/\1/p' pyproject.toml); do \
            set -- "$@" --no-install-package "$name"; \
        done; \
    fi; \
    uv sync "$@"
# The model is part of the image, so that nothing is downloaded at run time.
RUN /opt/graph-mem/bin/graph-mem fetch --only model

FROM code AS plugins
COPY --from=build /opt/graph-mem /opt/graph-mem
RUN /opt/graph-mem/bin/graph-mem fetch --only gds && \
    mkdir /plugins && \
    find /opt/graph-mem-cache/maven -name '*.jar' -exec cp -t /plugins {} +

FROM neo4j:2026.01.4-community AS neo4j
COPY --from=plugins --chown=7474:7474 /plugins/ /var/lib/neo4j/plugins/
USER 7474:7474
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=30 \
    CMD ["wget", "--quiet", "--spider", "http://127.0.0.1:7474"]

FROM python:${PYTHON}-slim AS service
RUN useradd --system --uid 10001 --create-home graph-mem
COPY --from=build /opt/graph-mem /opt/graph-mem
COPY --from=build --chown=10001 /opt/graph-mem-cache /opt/graph-mem-cache
ENV PATH=/opt/graph-mem/bin:$PATH \
    HF_HUB_OFFLINE=1 \
    GRAPH_MEM_CACHE_DIR=/opt/graph-mem-cache \
    GRAPH_MEM_HOST=0.0.0.0 \
    GRAPH_MEM_PORT=8000 \
    GRAPH_MEM_WORKER_PORT=8000 \
    GRAPH_MEM_LOG_FORMAT=json
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=6s --start-period=90s --retries=6 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/ready', timeout=5)"]
CMD ["graph-mem", "serve"]
