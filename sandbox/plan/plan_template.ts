/** The file that `svc plan init` writes: a plan with every field explained, which needs a real image and real hosts. */
export function planTemplate(name: string, image = 'agent-tools:1'): string {
  return `# A plan: steps that run one after the other in one container, each with a reach of its own.
#   svc plan freeze    seals it into plan.lock: the image, each command, each step's hosts
#   svc plan run       runs what the lock says, and nothing else
version: 1
name: ${name}

# An image with svc's helpers: svc image build --base BASE --tag agent-tools:1
image: ${image}

steps:
  - id: fetch
    # The program and its arguments. No shell reads them; write ["/bin/sh", "-c", "..."] where one is wanted.
    command: [curl, --fail, --silent, --show-error, --output, /home/agent/items.json, https://api.example.com/items]
    # What the step may reach, and what for. Without trust a step has no host, and no network
    # at all unless the plan is run with --egress=open.
    trust:
      # read, write, delete, spend or external-send: what the step does there, for the record and the review
      effect: read
      # exact hosts; another port than 443 is written HOST:PORT
      hosts: [api.example.com]
      # The credential it counts on (optional). A host binding adds it on the way out, the step never sees it.
      # Where a host is bound to several accounts, the step uses this one.
      # credential: vault://user/demo
    # Ended after this long (900 when left out).
    timeout_seconds: 60

  - id: count
    # No trust: no host, no proxy, no scope.
    command: [/bin/sh, -c, "wc -c < /home/agent/items.json > /home/agent/size.txt"]
    # Folders of this machine. The container is one: a mount is there for every step.
    # mounts:
    #   - {source: ./data, target: /home/agent/data, access: read}
    # Copied to OUTPUT/count/ when the step has succeeded.
    collect:
      - path: /home/agent/size.txt
`;
}
