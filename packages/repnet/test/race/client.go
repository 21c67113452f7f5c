// client.go NAME PORT LIMIT: connects as Go does by itself, of /etc/hosts; prints milliseconds and an error.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

func main() {
	limit, _ := strconv.Atoi(os.Args[3])
	done := make(chan error, 1)
	begun := time.Now()
	go func() {
		dialer := net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
		conn, err := dialer.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
		if err == nil {
			conn.Write([]byte("x"))
		}
		done <- err
	}()
	select {
	case err := <-done:
		ms := float64(time.Since(begun).Microseconds()) / 1000
		if err != nil {
			fmt.Printf("%.1f error\n", ms)
		} else {
			fmt.Printf("%.1f\n", ms)
		}
	case <-time.After(time.Duration(limit) * time.Millisecond):
		fmt.Println("none")
	}
}
