# The gateway: servers and folders of tools. Build it with docker-compose.yml, or: docker build -f deploy/docker/core.Dockerfile .
# Builds the package as npm publishes it, and installs it without what only development needs.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY dashboard/package.json dashboard/
RUN npm ci --include=dev
COPY tsconfig.json README.md CHANGELOG.md LICENSE ./
COPY bin bin
COPY dashboard dashboard
COPY host host
COPY python python
COPY rules rules
COPY scripts scripts
COPY src src
RUN npm run build && npm pack --pack-destination /tmp
RUN npm install --global --prefix /opt/toolgate --omit=dev --ignore-scripts /tmp/toolgate-*.tgz

FROM node:24-bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/toolgate /opt/toolgate
# The owner of the volume. docker-compose.yml runs the container as the same user.
ARG TOOLDOCK_UID=1000
ARG TOOLDOCK_GID=1000
RUN install -d -o "$TOOLDOCK_UID" -g "$TOOLDOCK_GID" /data /data/home
ENV PATH=/opt/toolgate/bin:$PATH NODE_ENV=production DATA_DIR=/data HOME=/data/home CORE_PORT=8808
VOLUME /data
WORKDIR /data
USER $TOOLDOCK_UID:$TOOLDOCK_GID
EXPOSE 8808
# Slim images have no curl. It asks the server of this configuration, with or without TLS.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["toolgate", "wait", "--timeout", "4s"]
ENTRYPOINT ["toolgate"]
CMD ["serve", "--host", "0.0.0.0", "--no-manager"]
