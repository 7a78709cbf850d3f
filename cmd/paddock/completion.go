package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

// completion prints a script for a shell, which completes verbs and flags.
func completion(_ context.Context, inv *invocation) error {
	script, known := map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[inv.args[0]]
	if !known {
		return inv.verb.misuse("%q is none of bash, zsh, fish", inv.args[0])
	}
	return inv.print(script())
}

// flagsOf are the flags of a verb as they are written.
func flagsOf(v *verb) (names []string) {
	for _, name := range append(append([]string{}, common...), v.flags...) {
		if name != "h" {
			names = append(names, "--"+name)
		}
	}
	return names
}

func bashCompletion() string {
	var b strings.Builder
	b.WriteString("# bash completion for paddock: source <(paddock completion bash)\n_paddock() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb= word words\n")
	// Behind -- the first word is a command, and the others are left to files.
	b.WriteString("\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\t\tif [[ $word == -- ]]; then\n\t\t\tCOMPREPLY=()\n" +
		"\t\t\t[[ ${COMP_WORDS[COMP_CWORD-1]} == -- ]] && COMPREPLY=($(compgen -c -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n")
	fmt.Fprintf(&b, "\t\tcase $word in %s) [[ $verb ]] || verb=$word ;; esac\n\tdone\n\tcase $verb in\n", strings.Join(verbNames(), "|"))
	for _, v := range verbs() {
		words := flagsOf(v)
		switch v.name {
		case "completion":
			words = append(words, "bash", "zsh", "fish")
		case "help":
			words = append(words, verbNames()...)
		}
		fmt.Fprintf(&b, "\t%s) words=%q ;;\n", v.name, strings.Join(words, " "))
	}
	fmt.Fprintf(&b, "\t*) words=%q ;;\n\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _paddock paddock\n",
		strings.Join(append(verbNames(), flagsOf(&verb{})...), " "))
	return b.String()
}

// zshCompletion is bash's, which zsh can run.
func zshCompletion() string {
	return "#compdef paddock\n# zsh completion for paddock: source <(paddock completion zsh)\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
		bashCompletion()
}

func fishCompletion() string {
	var b strings.Builder
	b.WriteString("# fish completion for paddock: paddock completion fish | source\n")
	all := new(invocation).flagSet(func(string) string { return "" })
	option := func(condition, name string) {
		f := all.Lookup(name)
		_, usage := flag.UnquoteUsage(f)
		needs := " -r"
		if is, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && is.IsBoolFlag() {
			needs = ""
		}
		fmt.Fprintf(&b, "complete -c paddock%s -l %s%s -d %s\n", condition, name, needs, quoteFish(usage))
	}
	for _, v := range verbs() {
		fmt.Fprintf(&b, "complete -c paddock -n __fish_use_subcommand -f -a %s -d %s\n", v.name, quoteFish(v.short))
		for _, name := range v.flags {
			option(fmt.Sprintf(" -n '__fish_seen_subcommand_from %s'", v.name), name)
		}
	}
	for _, name := range common {
		if name != "h" {
			option("", name)
		}
	}
	b.WriteString("complete -c paddock -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n")
	return b.String()
}

func quoteFish(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
