import { hostname } from "node:os";
import { basename } from "node:path";
import { once } from "node:events";
import { Command, InvalidArgumentError } from "commander";
import { formatEndpoint } from "#api/endpoint.ts";
import { usageError } from "#errors/problem.ts";
import { clusterIfAny, openCluster } from "../cluster/open-cluster.ts";
import { addClusterOptions, addResultOption, collect, type ClusterFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { printJson } from "../terminal/print-json.ts";
import { kcoreVersion } from "../process/version.ts";

interface Flags extends ClusterFlags {
  readonly port?: number;
  readonly listen?: ListenAddress;
  readonly name?: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly passphraseFile?: string;
  readonly output: "table" | "json";
}

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The default address, with another free port if this one is taken. */
const defaultAddress: ListenAddress = { host: "127.0.0.1", port: 8420 };

/** `kcore web`. */
export function webCommand(): Command {
  const command = addClusterOptions(new Command("web"))
    .description("Runs and the fleet in a browser, live; nothing can be changed there")
    .option("--port <n>", "listen on this port of 127.0.0.1 (0: any that is free); else 8420, or a free one", parsePort)
    .option(
      "--listen <address:port>",
      "listen for other machines, by TLS, for operators' certificates alone",
      parseAddress,
    )
    .option("--name <host>", "with --listen: a name or address under which browsers reach it (repeatable)", collect)
    .option(
      "--tls-cert <file>",
      "with --listen: a certificate of your own, in PEM, instead of one that the cluster's CA signs now",
    )
    .option("--tls-key <file>", "with --listen: the key of the certificate in --tls-cert")
    .option(
      "--passphrase-file <file>",
      "with --listen: the passphrase of the CA's keys; else KCORE_CA_PASSPHRASE, else kcore asks",
    );
  return addResultOption(command)
    .addHelpText(
      "after",
      `
Examples:
  kcore web                                   prints an address with a token; Ctrl-C ends it, runs go on
  ssh -L 8420:127.0.0.1:8420 bastion          from your desk, then the same address
  kcore web --listen 0.0.0.0:8443 --name bastion.example.org
  kcore web --port 0 -o json | jq -r .url

It reads the project's records and the runs' own sockets. docs/reading-a-run.md tells how a browser gets an operator's
certificate.`,
    )
    .action(showWeb);
}

async function showWeb({ output, ...flags }: Flags): Promise<void> {
  refuseMixed(flags);
  const project = findProject(flags.project);
  // A project without a cluster has runs, too.
  const cluster = await (flags.listen === undefined ? clusterIfAny(flags) : openCluster(flags));
  const { webSources } = await import("./web-sources.ts");
  const frame = { project: basename(project), version: kcoreVersion() };
  const common = { sources: webSources(project, () => openCluster(flags)), frame };
  const { listen } = flags;
  const { openOnLoopback, openWithTls } = await import("./open-web.ts");
  const { server, url, close } =
    listen === undefined
      ? await openOnLoopback({
          ...common,
          ...defaultAddress,
          ...(flags.port !== undefined && { port: flags.port, isGiven: true }),
        })
      : await openWithTls({ ...common, ...listen, ...flags, names: flags.name ?? [hostname(), listen.host] }, cluster);
  const lines =
    listen === undefined
      ? [
          `kcore web: ${url}`,
          `from elsewhere: ssh -L ${server.port}:127.0.0.1:${server.port} ${hostname()}   and then the same address`,
          "Ctrl-C ends it; runs go on",
        ]
      : [`kcore web: ${url}   for browsers with an operator's certificate`, "Ctrl-C ends it; runs go on"];
  process.stdout.write(output === "json" ? `${printJson({ url, port: server.port })}\n` : `${lines.join("\n")}\n`);
  await Promise.race(["SIGINT", "SIGTERM", "SIGHUP"].map((signal) => once(process, signal)));
  close();
  await server.close();
}

function refuseMixed({ listen, port, name, tlsCert, tlsKey }: Omit<Flags, "output">): void {
  const refuse = (message: string, hint: string): never => {
    throw usageError(message, hint);
  };
  if (listen !== undefined && port !== undefined)
    refuse("--listen has its port in itself", `--listen ${formatEndpoint({ host: listen.host, port })}`);
  if (listen === undefined && (name ?? tlsCert ?? tlsKey) !== undefined)
    refuse("--name, --tls-cert and --tls-key need --listen", "kcore web --listen 0.0.0.0:8443");
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    refuse("a certificate and its key belong together", "--tls-cert FILE --tls-key FILE");
}

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("a port is wanted: 0 to 65535");
}

function parseAddress(text: string): ListenAddress {
  const [, host, port] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || port === undefined)
    throw new InvalidArgumentError("an address and a port are wanted: 0.0.0.0:8443, [::]:8443");
  return { host: host.replace(/^\[|\]$/g, ""), port: parsePort(port) };
}
