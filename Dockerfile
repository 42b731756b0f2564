# An image with moses-rerank. Build it in a checkout, and run commands on a folder of lists:
#   docker build --platform linux/amd64 --tag moses-rerank .
#   docker run --rm --volume "$PWD/data:/data" moses-rerank init /data
# torch supports GPUs by default (docker run --gpus all). For a smaller image without this support:
#   docker build --platform linux/amd64 --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu --tag moses-rerank .
FROM python:3.12-slim
ARG PIP_EXTRA_INDEX_URL
WORKDIR /opt/moses-rerank
COPY . .
RUN scripts/install hf,plot
ENV PATH="/opt/moses-rerank/.venv/bin:$PATH"
WORKDIR /data
ENTRYPOINT ["moses-rerank"]
