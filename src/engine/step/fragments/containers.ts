import { sh, type Sh } from "../sh.ts";

/** A container image, and the runtime that holds it. */
export interface ContainerImage {
  /** The image's name with its registry, and a tag or a digest. */
  readonly name: string;
  readonly runtime: "auto" | "podman" | "docker" | "k3s" | "ctr";
  readonly namespace: string;
  readonly socket?: string | undefined;
}

/**
 * Sets `runtime`, and defines functions for the image (podman-image(1), docker-image(1), ctr(8)).
 * `answers`: whether the runtime responds. `digests` prints the image's digests, a line each, or fails if the image is
 * absent. `pull` and `load FILE` add the image, `remove` removes it.
 */
export function withRuntime({ name, runtime, namespace, socket }: ContainerImage): Sh {
  return sh`runtime=${runtime}
if [ "$runtime" = auto ]; then
  for runtime in podman docker k3s ctr none; do ! have "$runtime" || break; done
fi
have "$runtime" || refuse TOOL_MISSING ${
    runtime === "auto"
      ? "neither podman, docker, k3s nor ctr is on the node (packages podman, docker.io, containerd)"
      : `${runtime} is not on the node`
  }
case $runtime in
  podman | docker)
    answers() { "$runtime" image ls -q; }
    # Docker has no digest for a loaded image, so the image's id is printed, too.
    digests() { "$runtime" image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}{{.Id}}' ${name} 2>/dev/null | sed -e 's/^.*@//' -e '/^$/d' | grep .; }
    pull() { "$runtime" pull -q ${name}; }
    load() { "$runtime" load -q -i "$1"; }
    remove() { "$runtime" rmi ${name}; }
    ;;
  *)
    containerd() {
      if [ "$runtime" = k3s ]; then k3s ctr -n ${namespace} images "$@"; else ctr ${socket === undefined ? sh`` : sh`-a ${socket}`} -n ${namespace} images "$@"; fi
    }
answers() { containerd ls; }
    digests() { containerd ls 2>/dev/null | awk -v name=${name} '$1 == name { print $3 }' | grep .; }
    pull() { containerd pull ${name}; }
    load() { containerd import "$1"; }
    remove() { containerd rm ${name}; }
    ;;
esac`;
}
