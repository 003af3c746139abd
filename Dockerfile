# The service: API, worker and migration are this one image with different commands.
#   docker build .                               with torch, any sentence-transformers model
#   docker build --build-arg TORCH=without .     the default model through onnxruntime alone, a tenth of the size
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG TORCH=with
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/opt/graph-mem
WORKDIR /src
RUN pip install --no-cache-dir uv==0.13.9
COPY pyproject.toml README.md LICENSE ./
COPY graph_mem ./graph_mem
COPY schema ./schema
COPY graphql ./graphql
# The versions are those of requirements.lock: pyproject.toml constrains every one of them.
RUN set -eu; \
    without=""; \
    if [ "$TORCH" = without ]; then \
        without="--no-install-package torch --no-install-package triton --no-install-package sentence-transformers"; \
        for name in $(sed -n 's/^    "\(\(nvidia\|cuda\)-[a-z0-9-]*\)==.*/\1/p' pyproject.toml); do \
            without="$without --no-install-package $name"; \
        done; \
    fi; \
    uv sync --no-default-groups --no-editable $without
# The model is part of the image, so that nothing is downloaded at run time.
RUN GRAPH_MEM_CACHE_DIR=/opt/graph-mem-cache /opt/graph-mem/bin/graph-mem fetch --only model

FROM python:${PYTHON}-slim
RUN useradd --system --uid 10001 --create-home graph-mem
COPY --from=build /opt/graph-mem /opt/graph-mem
COPY --from=build --chown=graph-mem /opt/graph-mem-cache /opt/graph-mem-cache
ENV PATH=/opt/graph-mem/bin:$PATH \
    HF_HUB_OFFLINE=1 \
    GRAPH_MEM_CACHE_DIR=/opt/graph-mem-cache \
    GRAPH_MEM_HOST=0.0.0.0 \
    GRAPH_MEM_LOG_FORMAT=json
USER graph-mem
EXPOSE 8000
CMD ["graph-mem", "serve"]
