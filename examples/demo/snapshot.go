package main

import (
	"context"
	"errors"
	"time"
)

// snapshot is what can be seen of the bank from outside at about one moment.
type snapshot struct {
	accounts []accountSeen // nil if nobody answered
	total    int
	exact    bool // the balances are those of one moment
}

// accountSeen is one account with its lock's queue, by the workers' names.
type accountSeen struct {
	number  int
	balance int
	holder  string
	waiting []string
}

// look takes a snapshot.
func look(ctx context.Context, b *bank) snapshot {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	queues, err := b.queues(ctx)
	if err != nil {
		return snapshot{}
	}
	balances, err := b.balances(ctx)
	if err != nil && !errors.Is(err, errBusy) {
		return snapshot{}
	}
	s := snapshot{exact: err == nil, accounts: make([]accountSeen, b.accounts)}
	for i := range s.accounts {
		a := &s.accounts[i]
		a.number = i + 1
		if s.exact {
			a.balance = balances[i]
			s.total += a.balance
		}
		for _, p := range queues[i] {
			if p.Holds {
				a.holder = string(p.Data)
			} else {
				a.waiting = append(a.waiting, string(p.Data))
			}
		}
	}
	return s
}

// doings is whose locks somebody holds, and whose it waits for.
func (s snapshot) doings(name string) (holds, waits []int) {
	for _, a := range s.accounts {
		if a.holder == name {
			holds = append(holds, a.number)
		}
		for _, waiting := range a.waiting {
			if waiting == name {
				waits = append(waits, a.number)
			}
		}
	}
	return holds, waits
}
