package framework_test

import (
	"context"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A client proves itself by SASL, and only it and a reader can use the node.
func ExampleConfig_sasl() {
	srv, err := zktest.New(zktest.SASLUsers(map[string]string{"orders": "secret", "audit": "other"}), zktest.RequireSASL())
	if err != nil {
		panic(err)
	}
	defer srv.Close()

	ctx := context.Background()
	orders, err := framework.Connect(ctx, framework.Config{ConnectString: srv.ConnectString(), SASL: sasl.DigestMD5("orders", "secret")})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	mine, reader := framework.AuthACL(framework.PermAll), framework.SASLACL(framework.PermRead, "audit")
	if _, err := orders.Create(ctx, "/orders", []byte("42"), framework.Persistent, framework.ACLs(mine, reader)); err != nil {
		panic(err)
	}

	audit, err := framework.Connect(ctx, framework.Config{ConnectString: srv.ConnectString(), SASL: sasl.DigestMD5("audit", "other")})
	if err != nil {
		panic(err)
	}
	defer audit.Close()
	data, _, err := audit.Get(ctx, "/orders")
	fmt.Println(string(data), err)
	_, err = audit.Set(ctx, "/orders", nil, framework.AnyVersion)
	fmt.Println(err)
	// Output:
	// 42 <nil>
	// set /orders: zk: not authenticated: WRITE on /orders is needed (credentials given: sasl:audit)
}
